package com.endpoint.sapwood;

import android.content.Context;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.BaseAdapter;
import android.widget.TextView;

/** Questions to the right, answers over the whole width. */
final class MessageAdapter extends BaseAdapter {
  private static final int QUESTION = 0;
  private static final int ANSWER = 1;

  private final Context context;
  private final ChatSession session;

  MessageAdapter(Context context, ChatSession session) {
    this.context = context;
    this.session = session;
  }

  @Override
  public int getCount() {
    return session.messages().size();
  }

  @Override
  public ChatMessage getItem(int position) {
    return session.messages().get(position);
  }

  @Override
  public long getItemId(int position) {
    return position;
  }

  @Override
  public int getViewTypeCount() {
    return 2;
  }

  @Override
  public int getItemViewType(int position) {
    return getItem(position).isAnswer() ? ANSWER : QUESTION;
  }

  @Override
  public View getView(int position, View old, ViewGroup parent) {
    ChatMessage message = getItem(position);
    View view = old;
    if (view == null) {
      int layout = message.isAnswer() ? R.layout.item_answer : R.layout.item_question;
      view = LayoutInflater.from(context).inflate(layout, parent, false);
    }
    TextView text = view.findViewById(R.id.item_text);
    text.setText(message.text);
    if (message.isAnswer()) {
      boolean isLast = position == getCount() - 1;
      showAnswer(view, message, isLast);
      text.setContentDescription(context.getString(R.string.answer_said, message.text));
    } else {
      text.setContentDescription(context.getString(R.string.you_said, message.text));
    }
    return view;
  }

  private void showAnswer(View view, ChatMessage message, boolean isLast) {
    view.findViewById(R.id.item_text).setVisibility(visible(message.text.length() > 0));
    String about = note(message);
    TextView note = view.findViewById(R.id.item_note);
    note.setText(about);
    note.setVisibility(visible(!about.isEmpty()));
    View retry = view.findViewById(R.id.item_retry);
    boolean offered = isLast && message.status == ChatMessage.Status.FAILED;
    retry.setVisibility(visible(offered));
    retry.setOnClickListener(
        new View.OnClickListener() {
          @Override
          public void onClick(View button) {
            session.tryAgain();
          }
        });
  }

  private static int visible(boolean shown) {
    return shown ? View.VISIBLE : View.GONE;
  }

  private String note(ChatMessage message) {
    switch (message.status) {
      case WAITING:
        return context.getString(R.string.answer_thinking);
      case STOPPED:
        return context.getString(R.string.answer_stopped);
      case CUT:
        return context.getString(R.string.answer_cut);
      case CONTEXT_FULL:
        return context.getString(R.string.answer_context);
      case FAILED:
        return context.getString(R.string.answer_failed, Words.of(context, message.problem));
      case DONE:
        return message.stats == null
            ? ""
            : context.getString(
                R.string.answer_stats,
                message.stats.tokensPerSecond,
                message.stats.meanAcceptedLength);
      default: // STREAMING
        return "";
    }
  }
}
