plugins {
    alias(libs.plugins.android.library)
}

android {
    namespace = "com.endpoint.sapwood.engine"
    compileSdk = libs.versions.compileSdk.get().toInt()

    defaultConfig {
        minSdk = libs.versions.minSdk.get().toInt()
        ndk {
            abiFilters += "arm64-v8a"
        }
        externalNativeBuild {
            cmake {
                arguments += listOf(
                    "-DSAPWOOD_BUILD_JNI=ON",
                    "-DSAPWOOD_BUILD_TESTS=OFF",
                    "-DANDROID_STL=c++_static",
                    "-DANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES=ON",
                )
                targets += "sapwood_jni"
            }
        }
    }

    externalNativeBuild {
        cmake {
            path = file("../../CMakeLists.txt") // needs nlohmann/json.hpp: nlohmann-json3-dev
        }
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8 // what scripts/build_apk's dexer takes
        targetCompatibility = JavaVersion.VERSION_1_8
    }
}
