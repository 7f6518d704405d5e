import type { Clock } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { waitFor } from "../foundation/base/wait.ts";
import type { ApplicationOf } from "../service/applications.ts";
import type { CallerOf } from "../service/callers.ts";
import type { Metrics } from "../service/metrics/metrics.ts";
import type { ServerOptions } from "../service/server.ts";
import { READINESS_PATH } from "../service/version.ts";

/** A start takes a second, and a large migration longer: then callers get 503 instead. */
const WAIT_MS_MAX = 30_000;
const WAITING_MAX = 1_000;
const RETRY_S = 5;

interface Gated {
  readonly applicationOf: ApplicationOf;
  readonly metrics: Pick<Metrics, "countRequest">;
  readonly callerOf: CallerOf;
}

const loading = () =>
  new AppError("unavailable", {
    message: "The service is loading. Try again after the time in Retry-After.",
    headers: { "retry-after": String(RETRY_S) },
  });

/**
 * The server listens before the service is composed. Requests that need an application wait at the gate until it opens: up to 1,000
 * of them, for 30 s; the others, and those for the readiness, get 503.
 */
export class ServiceGate {
  #service: Gated | null = null;
  #waiting = 0;
  readonly #opened = Promise.withResolvers<Gated>();

  constructor(private readonly clock: Clock) {}

  open(service: Gated): void {
    this.#service = service;
    this.#opened.resolve(service);
  }

  /** What the server asks of the service. */
  readonly handlers: Required<Pick<ServerOptions, "applicationOf" | "callerOf" | "countRequest">> = {
    applicationOf: (path, host) => this.#service?.applicationOf(path, host) ?? this.#wait(path, host),
    callerOf: (request) => this.#service?.callerOf(request) ?? null,
    countRequest: (method, status) => {
      if (this.#service !== null) this.#service.metrics.countRequest(method, status);
      else void this.#opened.promise.then(({ metrics }) => metrics.countRequest(method, status));
    },
  };

  async #wait(path: string, host: string) {
    if (path === READINESS_PATH || this.#waiting >= WAITING_MAX) throw loading();
    this.#waiting++;
    try {
      const opened = await waitFor(this.clock, this.#opened.promise, { timeoutMs: WAIT_MS_MAX });
      if (!opened.ok) throw loading();
      return await opened.value.applicationOf(path, host);
    } finally {
      this.#waiting--;
    }
  }
}
