/** A receiver of webhooks that checks every signature with the reference implementation. */
import { Webhook } from "standardwebhooks";
import { chance } from "./claims.ts";

const SLOW_MS_MAX = 40;
const TOLERANCE_MS = 15_000;

export class WebhookReceiver {
  /** `event id path` of everything that was acknowledged with 204. */
  readonly received = new Set<string>();
  /** First arrivals by path, in their order. */
  readonly arrivals = new Map<string, string[]>();
  /** Requests whose signature or time is wrong. */
  readonly invalid: string[] = [];
  /** All requests, repetitions included. */
  requests = 0;
  secret = "";
  /** How far the sender's clock may be from ours. */
  allowedOffsetsMs: readonly number[] = [0];
  #failing = 0;
  readonly #failed = new Set<string>();
  readonly #server: Bun.Server<undefined>;

  constructor() {
    this.#server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.#receive(request) });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** Answers the next requests with 500, each event once. */
  failNext(times: number): void {
    this.#failing = times;
  }

  stop(): void {
    void this.#server.stop(true);
  }

  /** What is wrong with a request; null: nothing. The time is compared here, because the sender's clock may be set. */
  #problemOf(headers: Headers, body: string): string | null {
    const id = headers.get("webhook-id") ?? "";
    const atMs = Number(headers.get("webhook-timestamp")) * 1_000;
    const nowMs = Date.now();
    if (!this.allowedOffsetsMs.some((offsetMs) => Math.abs(nowMs + offsetMs - atMs) < TOLERANCE_MS))
      return `timestamp ${headers.get("webhook-timestamp")}`;
    const expected = new Webhook(this.secret).sign(id, new Date(atMs), body);
    return headers.get("webhook-signature") === expected ? null : `signature ${headers.get("webhook-signature")}`;
  }

  async #receive(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const body = await request.text();
    this.requests++;
    const problem = this.#problemOf(request.headers, body);
    if (problem !== null) {
      this.invalid.push(problem);
      return new Response(null, { status: 401 });
    }
    await Bun.sleep(chance(SLOW_MS_MAX));
    const id = `${request.headers.get("webhook-id")} ${pathname}`;
    if (this.#failing > 0 && !this.#failed.has(id)) {
      this.#failing--;
      this.#failed.add(id);
      return new Response(null, { status: 500 });
    }
    const [eventId = ""] = id.split(" ");
    if (!this.received.has(id)) this.arrivals.set(pathname, [...(this.arrivals.get(pathname) ?? []), eventId]);
    this.received.add(id);
    return new Response(null, { status: 204 });
  }
}
