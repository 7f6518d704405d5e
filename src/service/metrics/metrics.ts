import { z } from "zod";
import type { Clock } from "../../foundation/base/clock.ts";
import { NetworkMetrics } from "./network-metrics.ts";
import { completeRegistry, type ServiceState, stateRegistry } from "./state-metrics.ts";
import { Counter, Registry, Gauge, Histogram } from "./prometheus.ts";
import { SummedCounter } from "./summed-counter.ts";
import { readdirSync, readFileSync } from "node:fs";
import { MAIL_OUTCOMES } from "../../verify/bounces/mailbox/read-bounce-mail.ts";
import { BACKGROUND_OUTCOMES } from "../../verify/policy/background-checks.ts";
import type { PolicyWatch } from "../../verify/policy/open.ts";
import { POLICY_REFUSALS } from "../../verify/policy/policy-listener.ts";
import { POLICY_DECISIONS } from "../../verify/policy/recipient-policy.ts";
import type { Fact } from "../../foundation/db/facts.ts";

const metricRowSchema = z.object({
  name: z.string(),
  type: z.string(),
  help: z.string(),
  labelNames: z.array(z.string()),
});
type MetricRow = z.output<typeof metricRowSchema>;

/** The media type of the Prometheus text format. */
export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/**
 * All metrics of the process. Counters and histograms live in memory and start at zero; gauges are read at each scrape.
 * No label holds an address, a host, a domain or the name of an account.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: SummedCounter<"method" | "status">;
  readonly #process: ProcessMetrics;
  readonly activity: ActivityMetrics;
  readonly network: NetworkMetrics;
  readonly policy: PolicyWatch;

  constructor(clock: Clock) {
    this.activity = new ActivityMetrics(this.#registry);
    this.network = new NetworkMetrics(this.#registry, clock);
    this.policy = watchPolicy(this.#registry);
    this.#process = new ProcessMetrics(this.#registry, clock);
    this.#requests = new SummedCounter({
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

  /** Every metric, for the manual. */
  describe(): readonly MetricRow[] {
    return [this.#registry, completeRegistry()].flatMap((registry) =>
      z
        .array(metricRowSchema)
        .parse(registry.getMetricsAsArray())
        .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    );
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

/** Interval of the ticks by which the event loop is measured. */
export const TICK_MS = 100;
const LAG_BUCKETS_S = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const MICROSECONDS_PER_SECOND = 1e6;

/** Limits and descriptors exist on Linux only; undefined elsewhere. */
const onLinux = <T>(read: () => T): T | undefined => (process.platform === "linux" ? read() : undefined);
const openFiles = (): number | undefined => onLinux(() => readdirSync("/proc/self/fd").length - 1);
const openFilesMax = (): number | undefined =>
  onLinux(() => {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  });

const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / MICROSECONDS_PER_SECOND;
};

const createProcessGauges = (registry: Registry) => {
  const registers = [registry];
  const gauge = (name: string, help: string) => new Gauge({ registers, name, help });
  return {
    cpu: new Counter({
      ...{ registers, name: "process_cpu_seconds_total" },
      help: "User and system CPU time of the process in seconds.",
    }),
    resident: gauge("process_resident_memory_bytes", "Resident memory in bytes."),
    openFiles: gauge("process_open_fds", "Open file descriptors."),
    openFilesMax: gauge("process_max_fds", "Limit of open file descriptors."),
    started: gauge("process_start_time_seconds", "Start of the process, in seconds since 1970."),
    lag: new Histogram({
      ...{ registers, name: "postwarden_event_loop_lag_seconds", buckets: LAG_BUCKETS_S },
      help: `How late a timer that fires every ${TICK_MS} ms was.`,
    }),
  };
};

/** The process itself: CPU, memory, file descriptors, and how long the event loop is held. */
class ProcessMetrics {
  readonly #clock: Clock;
  readonly #gauges: ReturnType<typeof createProcessGauges>;
  #cancelTick: (() => void) | null = null;

  constructor(registry: Registry, clock: Clock) {
    this.#clock = clock;
    this.#gauges = createProcessGauges(registry);
    this.#gauges.started.set(clock.nowMs() / 1_000);
  }

  /** Measures the event loop until `stop`. */
  start(): void {
    const dueMs = this.#clock.monotonicMs() + TICK_MS;
    this.#cancelTick = this.#clock.after(TICK_MS, () => {
      this.#gauges.lag.observe(Math.max(0, this.#clock.monotonicMs() - dueMs) / 1_000);
      this.start();
    });
  }

  stop(): void {
    this.#cancelTick?.();
    this.#cancelTick = null;
  }

  /** Reads what is only known at a scrape. */
  update(): void {
    const gauges = this.#gauges;
    gauges.cpu.reset();
    gauges.cpu.inc(cpuSeconds());
    gauges.resident.set(process.memoryUsage.rss());
    const [open, max] = [openFiles(), openFilesMax()];
    if (open !== undefined) gauges.openFiles.set(open);
    if (max !== undefined) gauges.openFilesMax.set(max);
  }
}

/** From an event to its delivery: at once, after a retry, after an outage of the receiver. */
const DELIVERY_BUCKETS_S = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 28_800, 86_400];

const CREDIT_MOVES = ["grant", "hold", "settle", "release"];
const DELIVERY_OUTCOMES = ["delivered", "retry", "rejected", "failed"];

const createCounters = (registry: Registry) => {
  const registers = [registry];
  return {
    verifications: new SummedCounter({
      ...{ registers, name: "postwarden_verifications_total" },
      help: "Verifications that ended, by result.",
      labelNames: ["mode", "source", "verdict", "sub_status"] as const,
    }),
    credits: new SummedCounter({
      ...{ registers, name: "postwarden_credits_total" },
      help: "Credits granted, held, charged (settled) and released.",
      labelNames: ["move"] as const,
    }),
    reports: new SummedCounter({
      ...{ registers, name: "postwarden_reports_total" },
      help: "Parts of report mails and uploads that were read, by what became of them.",
      labelNames: ["mode", "via", "outcome", "reason"] as const,
    }),
    checks: new SummedCounter({
      ...{ registers, name: "postwarden_blocklist_checks_total" },
      help: "Checks of blocklist targets, by the status of the target after the check.",
      labelNames: ["mode", "trigger", "status"] as const,
    }),
    bounceMails: new SummedCounter({
      ...{ registers, name: "postwarden_bounce_mails_total" },
      help: "Mails of the bounce mailbox that were read, by what they are.",
      labelNames: ["outcome"] as const,
    }),
    attempts: new SummedCounter({
      ...{ registers, name: "postwarden_webhook_attempts_total" },
      help: "Attempts to deliver webhooks, by what followed.",
      labelNames: ["mode", "outcome"] as const,
    }),
    deliverySeconds: new Histogram({
      ...{ registers, name: "postwarden_webhook_delivery_seconds" },
      help: "Time from an event to its delivery.",
      labelNames: ["mode"] as const,
      buckets: DELIVERY_BUCKETS_S,
    }),
  };
};

const POLICY_BUCKETS_S = [0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5];

/** Counts what mail servers were answered about recipients. */
const watchPolicy = (registry: Registry): PolicyWatch => {
  const registers = [registry];
  const answers = new SummedCounter({
    ...{ registers, name: "postwarden_policy_answers_total" },
    help: "Answers to mail servers about recipients, by what was decided.",
    labelNames: ["decision"] as const,
  });
  const seconds = new Histogram({
    ...{ registers, name: "postwarden_policy_answer_seconds", buckets: POLICY_BUCKETS_S },
    help: "Time from a complete question of a mail server to its answer.",
  });
  const refusals = new SummedCounter({
    ...{ registers, name: "postwarden_policy_refused_connections_total" },
    help: "Connections of mail servers that were refused or ended, by reason.",
    labelNames: ["reason"] as const,
  });
  const background = new SummedCounter({
    ...{ registers, name: "postwarden_policy_recipients_total" },
    help: "Recipients of outgoing mail without a certain result, by what became of them.",
    labelNames: ["outcome"] as const,
  });
  for (const decision of POLICY_DECISIONS) answers.inc({ decision }, 0);
  for (const reason of POLICY_REFUSALS) refusals.inc({ reason }, 0);
  for (const outcome of BACKGROUND_OUTCOMES) background.inc({ outcome }, 0);
  return {
    answered: (decision, elapsedS) => {
      answers.inc({ decision });
      seconds.observe(elapsedS);
    },
    refused: (reason) => refusals.inc({ reason }),
    background: (outcome) => background.inc({ outcome }),
  };
};

/** Counts what the service has stored. */
export class ActivityMetrics {
  readonly #counters: ReturnType<typeof createCounters>;

  constructor(registry: Registry) {
    this.#counters = createCounters(registry);
    // From zero, so that the first of each counts as an increase.
    for (const move of CREDIT_MOVES) this.#counters.credits.inc({ move }, 0);
    for (const outcome of DELIVERY_OUTCOMES) this.#counters.attempts.inc({ mode: "live", outcome }, 0);
    for (const outcome of MAIL_OUTCOMES) this.#counters.bounceMails.inc({ outcome }, 0);
  }

  /** Never throws: the labels of every fact are declared. */
  count(fact: Fact): void {
    const counters = this.#counters;
    switch (fact.kind) {
      case "verification": {
        const { mode, source, verdict, subStatus } = fact;
        counters.verifications.inc({ mode, source, verdict, sub_status: subStatus });
        return;
      }
      case "credits":
        counters.credits.inc({ move: fact.move }, fact.credits);
        return;
      case "report": {
        const { mode, via, outcome, reason } = fact;
        counters.reports.inc({ mode, via, outcome, reason: reason ?? "" });
        return;
      }
      case "blocklist_check": {
        const { mode, trigger, status } = fact;
        counters.checks.inc({ mode, trigger, status });
        return;
      }
      case "webhook": {
        const { mode, status, ageMs } = fact;
        counters.attempts.inc({ mode, outcome: status === "pending" ? "retry" : status });
        if (status === "delivered") counters.deliverySeconds.observe({ mode }, Math.max(0, ageMs) / 1_000);
        return;
      }
      case "bounce_mail":
        counters.bounceMails.inc({ outcome: fact.outcome });
        return;
      case "list_end":
        // Lists in progress are a gauge.
        return;
      default:
        fact satisfies never;
    }
  }
}
