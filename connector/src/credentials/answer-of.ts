import { RelayError } from "../errors.ts";
import { RENEWAL } from "../limits.ts";

/**
 * What a callback gives. Rejects with `invalid_credential` when it fails, with `timeout` when it does not answer, and with
 * `closed` once the signal is aborted: nothing waits for a callback that hangs.
 */
export async function answerOf<T>(callback: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: givenUp, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(tooLate()), RENEWAL.answerWithinMs);
  const stop = () => reject(new RelayError("closed"));
  signal.addEventListener("abort", stop);
  try {
    return await Promise.race([called(callback), givenUp]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

async function called<T>(callback: () => Promise<T>): Promise<T> {
  try {
    return await callback();
  } catch (cause) {
    throw new RelayError("invalid_credential", {
      message: "The callback that gives the credential failed; see cause.",
      cause,
    });
  }
}

function tooLate(): RelayError {
  return new RelayError("timeout", {
    message: `The callback that gives the credential did not answer within ${RENEWAL.answerWithinMs / 1000} s.`,
    hint: "Let it answer or reject sooner. A connector that runs asks it again.",
  });
}
