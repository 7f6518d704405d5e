import type { ApplicationOf } from "../service/applications.ts";
import type { Metrics } from "../service/metrics/metrics.ts";
import type { ServerOptions } from "../service/server.ts";

interface Gated {
  readonly applicationOf: ApplicationOf;
  readonly metrics: Pick<Metrics, "countRequest">;
}

/** The server listens before the service is composed. Requests that need an application wait at the gate until it opens. */
export class ServiceGate {
  #service: Gated | null = null;
  readonly #opened = Promise.withResolvers<Gated>();

  open(service: Gated): void {
    this.#service = service;
    this.#opened.resolve(service);
  }

  /** What the server asks of the service. */
  readonly handlers: Required<Pick<ServerOptions, "applicationOf" | "countRequest">> = {
    applicationOf: (path, host) =>
      this.#service?.applicationOf(path, host) ??
      this.#opened.promise.then((service) => service.applicationOf(path, host)),
    countRequest: (method, status) => {
      if (this.#service !== null) this.#service.metrics.countRequest(method, status);
      else void this.#opened.promise.then(({ metrics }) => metrics.countRequest(method, status));
    },
  };
}
