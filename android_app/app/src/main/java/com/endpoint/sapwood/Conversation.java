package com.endpoint.sapwood;

import com.endpoint.sapwood.engine.Message;
import com.endpoint.sapwood.engine.Message.Role;
import java.util.ArrayList;
import java.util.List;

/** Questions and answers in turn. Lives in memory only: nothing that is said is ever stored. */
final class Conversation {
  private final List<ChatMessage> messages = new ArrayList<>();

  List<ChatMessage> messages() {
    return messages;
  }

  boolean isEmpty() {
    return messages.isEmpty();
  }

  void clear() {
    messages.clear();
  }

  /** Adds a question and the answer to come. */
  ChatMessage ask(String question) {
    messages.add(new ChatMessage(Role.USER, question, ChatMessage.Status.DONE));
    ChatMessage answer = new ChatMessage(Role.ASSISTANT, "", ChatMessage.Status.WAITING);
    messages.add(answer);
    return answer;
  }

  /** The latest answer, to be given again from its beginning; null if it did not fail. */
  ChatMessage again() {
    ChatMessage last = messages.isEmpty() ? null : messages.get(messages.size() - 1);
    if (last == null || last.status != ChatMessage.Status.FAILED) {
      return null;
    }
    last.text.setLength(0);
    last.problem = null;
    last.stats = null;
    last.status = ChatMessage.Status.WAITING;
    return last;
  }

  /**
   * What the engine is told: up to the last question, and without questions that nothing was
   * answered to, because a chat template wants question and answer in turn.
   */
  List<Message> forEngine() {
    List<Message> told = new ArrayList<>();
    for (int i = 0; i + 1 < messages.size(); i += 2) {
      ChatMessage question = messages.get(i);
      ChatMessage answer = messages.get(i + 1);
      boolean last = i + 2 >= messages.size();
      if (last || answer.text.length() > 0) {
        told.add(new Message(Role.USER, question.text.toString()));
      }
      if (!last && answer.text.length() > 0) {
        told.add(new Message(Role.ASSISTANT, answer.text.toString()));
      }
    }
    return told;
  }
}
