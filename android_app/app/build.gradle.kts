plugins {
    alias(libs.plugins.android.application)
}

val sapwoodVersion = rootProject.extra["sapwoodVersion"] as String
val engine = layout.buildDirectory.dir("engine")

android {
    namespace = "com.endpoint.sapwood"
    compileSdk = libs.versions.compileSdk.get().toInt()

    defaultConfig {
        applicationId = "com.endpoint.sapwood"
        minSdk = libs.versions.minSdk.get().toInt()
        targetSdk = libs.versions.targetSdk.get().toInt()
        versionName = sapwoodVersion
        versionCode = sapwoodVersion.split(".").fold(0) { code, part -> code * 100 + part.toInt() }
        ndk {
            abiFilters += "arm64-v8a"
        }
    }

    sourceSets["main"].jniLibs.srcDir(engine)
    packaging.jniLibs.useLegacyPackaging = true // the engine is a program: it must lie in a file

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    buildTypes {
        release {
            isMinifyEnabled = false
        }
    }
}

// The engine is a static program, and the same one whoever builds the app.
val buildEngine by tasks.registering(Exec::class) {
    commandLine("../../scripts/build_engine", "--arm64-musl") // knows whether there is anything to do
}

val copyEngine by tasks.registering(Copy::class) {
    dependsOn(buildEngine)
    from("../../build/engine-arm64-musl/libsapwood_engine.so")
    into(engine.map { it.dir("arm64-v8a") })
}

tasks.named("preBuild") {
    dependsOn(copyEngine)
}

dependencies {
    implementation(project(":library"))
}
