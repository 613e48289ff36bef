package com.endpoint.sapwood;

import android.content.Context;
import android.content.res.Resources;
import com.endpoint.sapwood.bundle.BundleException;
import com.endpoint.sapwood.engine.EngineException;

/** What went wrong, in the words of the person's language. */
final class Words {
  private Words() {}

  /** What happened, and in brackets the engine's own line where it helps to mend it. */
  static String of(Context context, EngineException problem) {
    String what = context.getString(sentence(problem.code()));
    String detail = problem.getMessage();
    boolean helps = problem.code() != EngineException.Code.BUSY && !detail.isEmpty();
    return helps ? context.getString(R.string.problem_with_detail, what, detail) : what;
  }

  /** The same without the engine's own line. */
  static String brief(Context context, EngineException problem) {
    return context.getString(sentence(problem.code()));
  }

  private static int sentence(EngineException.Code code) {
    switch (code) {
      case INVALID_ARGUMENT:
        return R.string.problem_invalid;
      case NOT_FOUND:
        return R.string.problem_not_found;
      case CORRUPT:
        return R.string.problem_corrupt;
      case UNSUPPORTED:
        return R.string.problem_unsupported;
      case EXHAUSTED:
        return R.string.problem_exhausted;
      case BUSY:
        return R.string.problem_busy;
      case NOT_LOADED:
        return R.string.problem_not_loaded;
      case VERSION:
        return R.string.problem_version;
      case NOT_STARTED:
        return R.string.problem_not_started;
      case CRASHED:
        return R.string.problem_crashed;
      case HUNG:
        return R.string.problem_hung;
      default: // CANCELLED, INTERNAL, PROTOCOL
        return R.string.problem_internal;
    }
  }

  static String of(Context context, BundleException problem) {
    String file = problem.file();
    switch (problem.problem()) {
      case NO_MANIFEST:
        return context.getString(R.string.bundle_no_manifest);
      case BAD_MANIFEST:
        return context.getString(R.string.bundle_bad_manifest);
      case WRONG_VERSION:
        return context.getString(R.string.bundle_wrong_version);
      case MISSING_FILE:
        return context.getString(R.string.bundle_missing_file, file);
      case WRONG_SIZE:
        return context.getString(R.string.bundle_wrong_size, file);
      case WRONG_CHECKSUM:
        return context.getString(R.string.bundle_wrong_checksum, file);
      case UNSAFE_NAME:
        return context.getString(R.string.bundle_unsafe_name);
      case NO_SPACE:
        return context.getString(R.string.bundle_no_space);
      case CANCELLED:
        return context.getString(R.string.bundle_cancelled);
      default: // UNREADABLE
        return context.getString(R.string.bundle_unreadable);
    }
  }

  /** A state of PowerManager.THERMAL_STATUS_*; null: not known. */
  static String heat(Resources resources, Integer status) {
    int[] words = {R.string.heat_none, R.string.heat_light, R.string.heat_moderate};
    int place = status == null ? 0 : status;
    return resources.getString(place < words.length ? words[place] : R.string.heat_severe);
  }
}
