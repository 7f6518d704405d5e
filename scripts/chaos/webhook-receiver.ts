/** A receiver of webhooks that checks every signature with the reference implementation. */
import { Webhook } from "standardwebhooks";
import { chance } from "./claims.ts";

const SLOW_MS_MAX = 40;

export class WebhookReceiver {
  /** `event id path` of everything that was acknowledged with 204. */
  readonly received = new Set<string>();
  /** First arrivals by path, in their order. */
  readonly arrivals = new Map<string, string[]>();
  /** Requests whose signature or time the reference implementation refuses. */
  readonly invalid: string[] = [];
  /** All requests, repetitions included. */
  requests = 0;
  secret = "";
  readonly #server: Bun.Server<undefined>;

  constructor() {
    this.#server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.#receive(request) });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  stop(): void {
    void this.#server.stop(true);
  }

  async #receive(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const body = await request.text();
    this.requests++;
    try {
      new Webhook(this.secret).verify(body, Object.fromEntries(request.headers));
    } catch (error) {
      this.invalid.push(error instanceof Error ? error.message : String(error));
      return new Response(null, { status: 401 });
    }
    await Bun.sleep(chance(SLOW_MS_MAX));
    const id = request.headers.get("webhook-id") ?? "";
    if (!this.received.has(`${id} ${pathname}`))
      this.arrivals.set(pathname, [...(this.arrivals.get(pathname) ?? []), id]);
    this.received.add(`${id} ${pathname}`);
    return new Response(null, { status: 204 });
  }
}
