# Shared by scripts/build_apk and scripts/test_android: the Android toolchain without an SDK, and the
# steps from android_app/ to classes and resources. Sourced after lib.sh.

android=$root/android_app
android_build=$root/build/android
toolchain=$cache/android
framework=/usr/share/android-framework-res/framework-res.apk
default_draft=$root/python_bindings/sapwood/drafts/smollm2-135m-instruct
application_id=com.endpoint.sapwood
min_sdk=26
target_sdk=35

# maven_jars FILE [MAVEN ARGUMENTS]: writes where the jars of toolchain/pom.xml lie, a line each.
maven_jars() {
  local list=$1
  shift
  mvn -q -B -f "$android/toolchain/pom.xml" "$@" dependency:build-classpath \
    -Dmdep.outputFile="$list.joined" -Dmdep.pathSeparator=: &&
    { tr ':' '\n' <"$list.joined" && echo; } >"$list"
}

# Whether a list of jars was made from the pom.xml of now, and every jar is still where it says.
jars_are_there() {
  local jar
  [[ -f $1 && -f $1.stamp && $(<"$1.stamp") == "$2" ]] || return 1
  while read -r jar; do [[ -z $jar || -f $jar ]] || return 1; done <"$1"
}

# ensure_jars build|tests: $toolchain/build.jars or tests.jars, which holds all of the former too.
ensure_jars() {
  local profile=() wanted
  wanted=$(hash_tree android_app/toolchain/pom.xml)
  ! jars_are_there "$toolchain/tests.jars" "$wanted" || return 0
  [[ $1 == tests ]] || ! jars_are_there "$toolchain/build.jars" "$wanted" || return 0
  [[ $1 == build ]] || profile=(-P tests)
  mkdir -p "$toolchain"
  quietly "fetching Android's classes and tools from Maven Central (185 MB; for tests 250 MB more)" \
    maven_jars "$toolchain/$1.jars" "${profile[@]}"
  printf '%s' "$wanted" >"$toolchain/$1.jars.stamp"
}

# jar_named PREFIX: the jar whose file name begins so.
jar_named() {
  { cat "$toolchain"/{tests,build}.jars 2>/dev/null || true; } | # one of them may not be there
    grep -m 1 -E "/$1-[0-9][^/]*\.jar$"
}

# Everything that both scripts need. Installs, so it comes first.
ensure_android() {
  lock
  ensure_system_packages android
  ensure_jars "$1"
  unlock
}

app_version() { sed -nE 's/^project\(sapwood VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt"; }

# 1.2.3 -> 10203: what tells Android which of two packages is newer.
version_code() {
  local major minor patch
  IFS=. read -r major minor patch <<<"$1"
  echo $((10#$major * 10000 + 10#$minor * 100 + 10#$patch))
}

# Manifest and resources to $android_build/resources.apk, and R.java. Gradle takes the package's name
# from its build file and wants none in the manifest; aapt2 wants it there. (Chained: what `quietly`
# runs does not stop at an error by itself.)
compile_resources() {
  local version
  version=$(app_version)
  rm -rf "$android_build/generated" && mkdir -p "$android_build/generated" &&
    sed "s|^<manifest |<manifest package=\"$application_id\" |" \
      "$android/app/src/main/AndroidManifest.xml" >"$android_build/AndroidManifest.xml" &&
    aapt2 compile --dir "$android/app/src/main/res" -o "$android_build/resources.flat.zip" &&
    aapt2 link -o "$android_build/resources.apk" -I "$framework" \
      --manifest "$android_build/AndroidManifest.xml" --java "$android_build/generated" \
      --min-sdk-version "$min_sdk" --target-sdk-version "$target_sdk" \
      --version-code "$(version_code "$version")" --version-name "$version" \
      "$android_build/resources.flat.zip"
}

# Library and app to $android_build/classes: Java 8, which is what the dexer takes.
compile_java() {
  rm -rf "$android_build/classes" && mkdir -p "$android_build/classes" &&
    find "$android/library/src/main/java" "$android/app/src/main/java" "$android_build/generated" \
      -name '*.java' >"$android_build/sources" &&
    javac --release 8 -encoding UTF-8 -proc:none \
      -Xlint:all,-options,-serial,-classfile,-deprecation -Werror \
      -cp "$(jar_named android-all)" -d "$android_build/classes" "@$android_build/sources"
}

compile_app() {
  mkdir -p "$android_build"
  quietly "compiling the app's resources" compile_resources
  quietly "compiling the app" compile_java
}
