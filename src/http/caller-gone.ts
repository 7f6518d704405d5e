import { nextTurn } from "../base/clock.ts";

/**
 * Throws an `AbortError` when the caller is gone a turn of the event loop later.
 *
 * The platform closes a connection on which a second request arrives before the first is answered: it knows no pipelining
 * (RFC 9112 §9.3.2). It does so when it comes to the second one, after it has handed out the first. What changes something
 * therefore waits for that turn: a request that can no longer be answered is not carried out, and not charged.
 */
export const refuseGone = async ({ signal }: Request): Promise<void> => {
  await nextTurn();
  if (signal.aborted) throw new DOMException("The caller is gone", "AbortError");
};
