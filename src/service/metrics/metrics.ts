import type { Clock } from "../../foundation/base/clock.ts";
import { ActivityMetrics } from "./activity-metrics.ts";
import { NetworkMetrics } from "./network-metrics.ts";
import { ProcessMetrics } from "./process-metrics.ts";
import { type ServiceState, stateRegistry } from "./state-metrics.ts";
import { Counter, Registry } from "./prometheus.ts";

/** The media type of the Prometheus text format. */
export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/**
 * All metrics of the process. Counters and histograms live in memory and start at zero; gauges are read at each scrape.
 * No label holds an address, a host, a domain or the name of an account.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<"method" | "status">;
  readonly #process: ProcessMetrics;
  readonly activity: ActivityMetrics;
  readonly network: NetworkMetrics;

  constructor(clock: Clock) {
    this.activity = new ActivityMetrics(this.#registry);
    this.network = new NetworkMetrics(this.#registry, clock);
    this.#process = new ProcessMetrics(this.#registry, clock);
    this.#requests = new Counter({
      ...{ registers: [this.#registry], name: "postwarden_http_requests_total" },
      help: "HTTP requests that were answered.",
      labelNames: ["method", "status"] as const,
    });
  }

  /** Measures the event loop until `stop`. */
  start(): void {
    this.#process.start();
  }

  stop(): void {
    this.#process.stop();
  }

  countRequest(method: string, status: number): void {
    this.#requests.inc({ method: KNOWN_METHODS.has(method) ? method : "other", status: String(status) });
  }

  /** Everything in the text format of Prometheus. */
  async render(state: ServiceState): Promise<string> {
    this.#process.update();
    const texts = await Promise.all([this.#registry.metrics(), stateRegistry(state).metrics()]);
    return texts.join("");
  }
}

/** A client may send any method: the number of labels must not grow. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"]);
