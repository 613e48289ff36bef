// The Java library's way into sapwood_serve: a socket pair of which the engine has one end, on a
// thread of its own, and JniTransport.java the other.
#include <jni.h>
#include <sapwood/sapwood.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

namespace {

constexpr int kChunk = 1 << 16;  // bytes that are copied between Java and the socket at a time

void serve_and_close(int socket) {
  sapwood_serve(socket, socket);
  close(socket);
}

}  // namespace

extern "C" {

JNIEXPORT jint JNICALL Java_com_endpoint_sapwood_engine_JniTransport_serve(JNIEnv*, jclass) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return -1;
  try {
    std::thread(serve_and_close, ends[1]).detach();
  } catch (const std::system_error&) {
    close(ends[0]);
    close(ends[1]);
    return -1;
  }
  return ends[0];
}

JNIEXPORT jint JNICALL Java_com_endpoint_sapwood_engine_JniTransport_receive(
    JNIEnv* env, jclass, jint socket, jbyteArray bytes, jint from, jint count) {
  std::array<jbyte, kChunk> chunk;
  ssize_t got = 0;
  do {
    got = recv(socket, chunk.data(), static_cast<size_t>(std::min<jint>(count, kChunk)), 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) env->SetByteArrayRegion(bytes, from, static_cast<jsize>(got), chunk.data());
  return static_cast<jint>(got);
}

JNIEXPORT jboolean JNICALL Java_com_endpoint_sapwood_engine_JniTransport_send(
    JNIEnv* env, jclass, jint socket, jbyteArray bytes, jint from, jint count) {
  std::array<jbyte, kChunk> chunk;
  while (count > 0) {
    const jint length = std::min<jint>(count, kChunk);
    env->GetByteArrayRegion(bytes, from, length, chunk.data());
    for (jint sent = 0; sent < length;) {
      const ssize_t now = send(socket, chunk.data() + sent, static_cast<size_t>(length - sent),
                               MSG_NOSIGNAL);  // an engine that has ended is no reason to die
      if (now < 0 && errno == EINTR) continue;
      if (now < 0) return JNI_FALSE;
      sent += static_cast<jint>(now);
    }
    from += length;
    count -= length;
  }
  return JNI_TRUE;
}

JNIEXPORT void JNICALL Java_com_endpoint_sapwood_engine_JniTransport_shutDown(
    JNIEnv*, jclass, jint socket, jboolean only_writing) {
  shutdown(socket, only_writing == JNI_TRUE ? SHUT_WR : SHUT_RDWR);
}

JNIEXPORT void JNICALL Java_com_endpoint_sapwood_engine_JniTransport_close(JNIEnv*, jclass,
                                                                           jint socket) {
  close(socket);
}

}  // extern "C"
