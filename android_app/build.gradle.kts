plugins {
    alias(libs.plugins.android.application) apply false
    alias(libs.plugins.android.library) apply false
}

// The version is the runtime's: one number for all of Sapwood.
val cmakeVersion = Regex("""project\(sapwood VERSION ([0-9.]+)""")
    .find(file("../CMakeLists.txt").readText())!!.groupValues[1]
extra["sapwoodVersion"] = cmakeVersion
