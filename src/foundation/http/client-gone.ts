import { nextTurn } from "../base/clock.ts";

/**
 * Throws an `AbortError` if the client has disconnected one turn of the event loop later.
 *
 * The runtime does not support pipelining (RFC 9112 §9.3.2): it closes a connection on which a second request arrives before the
 * response to the first, but only after it has passed the first one on. Requests that change something wait for that turn, so that a request
 * that can get no response is not executed and not charged.
 */
export const abortIfClientGone = async ({ signal }: Request): Promise<void> => {
  await nextTurn();
  if (signal.aborted) throw new DOMException("The client disconnected", "AbortError");
};
