/** A stream of report mails from several connections, which survives that the server is killed under it. */
import { bring, greet, openTalk, type Parcel, type Place, type Talk } from "../lab/dmarc-smtp.ts";

const RECONNECT_MS = 10;

export interface Stream {
  /** Numbers of the mails that were answered with 250. */
  readonly acknowledged: ReadonlySet<number>;
  /** Mails whose end was never heard: they were sent again, and may have come twice. */
  readonly repeated: number;
  /** Replies other than 250, by their code. */
  readonly refused: ReadonlyMap<number, number>;
  readonly left: number;
  /** Sends up to `most` mails, until they are through or `stop` is called; resolves when no connection is left. */
  send(most: number): { readonly done: Promise<void>; stop(): void };
}

/** Sends the mails number 0 to `count - 1`, those that were not acknowledged again and again. */
export const createStream = (
  place: Place,
  count: number,
  { connections, parcelOf }: { readonly connections: number; readonly parcelOf: (n: number) => Parcel },
): Stream => {
  const queue = Array.from({ length: count }, (_, n) => n);
  const acknowledged = new Set<number>();
  const refused = new Map<number, number>();
  let repeated = 0;

  const bringOne = async (talk: Talk, n: number): Promise<void> => {
    try {
      const { code } = await bring(talk, parcelOf(n));
      if (code === 250) {
        acknowledged.add(n);
        return;
      }
      refused.set(code, (refused.get(code) ?? 0) + 1);
      queue.push(n);
    } catch (error) {
      repeated++;
      queue.push(n);
      throw error;
    }
  };

  return {
    acknowledged,
    refused,
    get repeated() {
      return repeated;
    },
    get left() {
      return queue.length;
    },
    send: (most) => {
      let allowed = most;
      let isOver = false;
      const talkOnce = async (): Promise<void> => {
        const talk = await openTalk(place);
        try {
          await greet(talk);
          while (!isOver && allowed > 0) {
            const n = queue.shift();
            if (n === undefined) return;
            allowed--;
            await bringOne(talk, n);
          }
        } finally {
          talk.end();
        }
      };
      const worker = async (): Promise<void> => {
        while (!isOver && allowed > 0 && queue.length > 0) {
          // A connection that breaks is what this is about: the next one is opened when somebody listens again.
          await talkOnce().catch(() => Bun.sleep(RECONNECT_MS));
        }
      };
      const done = Promise.all(Array.from({ length: connections }, worker)).then(() => undefined);
      return {
        done,
        stop: () => {
          isOver = true;
        },
      };
    },
  };
};
