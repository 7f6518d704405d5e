import { createClientAddress } from "./client-address.ts";

/** What names the peer of a request: the server. */
type Peers = Pick<Bun.Server<unknown>, "requestIP">;

/** Names the client of a request by its connection and the proxies that are trusted. */
export class ClientAddresses {
  #clientOf: ReturnType<typeof createClientAddress>;
  #peers: Peers | null = null;

  /** `trustedProxies` are networks whose X-Forwarded-For names the client. */
  constructor(trustedProxies: readonly string[]) {
    this.#clientOf = createClientAddress(trustedProxies);
  }

  trust(networks: readonly string[]): void {
    this.#clientOf = createClientAddress(networks);
  }

  /** Sets the server that requests come from. */
  attach(peers: Peers): void {
    this.#peers = peers;
  }

  /** The client of a request, of which the runtime knows the peer only until the response is sent; null without a server. */
  of(request: Request): string | null {
    const peer = this.#peers?.requestIP(request)?.address;
    return peer === undefined ? null : this.#clientOf(peer, request.headers.get("x-forwarded-for"));
  }
}
