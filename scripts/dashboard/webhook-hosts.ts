/** Receivers of webhooks on loopback: one that accepts, one that fails for a while, one that never accepts, one that is slow. */
import { HOSTILE_LINE } from "./hostile.ts";

const SLOW_MS = 400;

export class WebhookHosts {
  readonly #server: Bun.Server<undefined>;
  /** Paths and events of all requests. */
  readonly received: string[] = [];

  constructor() {
    this.#server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.#receive(request) });
  }

  url(path: "/orders" | "/crm" | "/gone" | "/slow" | "/hostile"): string {
    return `http://127.0.0.1:${this.#server.port}${path}`;
  }

  stop(): void {
    void this.#server.stop(true);
  }

  async #receive(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    await request.text();
    this.received.push(pathname);
    switch (pathname) {
      case "/crm":
        return new Response("upstream connect error or disconnect/reset before headers", { status: 502 });
      case "/gone":
        return new Response("This integration was removed.", { status: 410 });
      case "/hostile":
        return new Response(HOSTILE_LINE, { status: 500, headers: { "content-type": "text/html" } });
      case "/slow":
        await Bun.sleep(SLOW_MS);
        return new Response(null, { status: 204 });
      default:
        return new Response(null, { status: 204 });
    }
  }
}
