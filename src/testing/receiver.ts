import { afterEach } from "bun:test";

/** A request that a receiver got. */
export interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The body as JSON. */
  readonly event: { readonly type: string; readonly timestamp: string; readonly data: Record<string, unknown> };
}

/** An HTTP server on loopback that records its requests. */
export interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** The response from now on; a function is called for every request. */
  answer(with_: number | ((request: Received, number_: number) => Response | Promise<Response>)): void;
  /** Resolves as soon as `count` requests have come. */
  untilReceived(count: number): Promise<void>;
}

/** Starts receivers for the tests of one file, and stops them after each test. They respond with 204 by default. */
export const createReceivers = (): (() => Receiver) => {
  const stops: Array<() => void> = [];
  afterEach(() => {
    for (const stop of stops.splice(0)) stop();
  });
  return () => {
    const received: Received[] = [];
    const waiting: Array<{ readonly count: number; resolve(): void }> = [];
    let answer: (request: Received, number_: number) => Response | Promise<Response> = () =>
      new Response(null, { status: 204 });
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        const body = await request.text();
        const headers = Object.fromEntries(request.headers.entries());
        const got = { path: new URL(request.url).pathname, headers, body, event: JSON.parse(body) };
        received.push(got);
        for (const { count, resolve } of waiting) if (received.length >= count) resolve();
        return answer(got, received.length);
      },
    });
    stops.push(() => void server.stop(true));
    return {
      url: `http://127.0.0.1:${server.port}/hook`,
      received,
      answer(with_) {
        answer = typeof with_ === "number" ? () => new Response(null, { status: with_ }) : with_;
      },
      untilReceived: (count) =>
        new Promise((resolve) => {
          waiting.push({ count, resolve });
          if (received.length >= count) resolve();
        }),
    };
  };
};
