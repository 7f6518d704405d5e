import { isoTime } from "../../../foundation/base/clock.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { mapConcurrently } from "../../../foundation/base/wait.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import { orRefusal } from "../../../foundation/db/group-commit.ts";
import type { DbClockLog } from "../../../foundation/db/runtime.ts";
import { abortableResolver, type DnsResolver, isDefinite } from "../../../foundation/net/dns.ts";
import type { RaiseAlert } from "../../records/domains/alert-store.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import {
  afterCheck,
  afterMode,
  type HostedPolicy,
  hostsOf,
  newPolicy,
  type PolicyObservation,
  servedUntilMs,
  textOfPolicy,
} from "../../records/sts/policy-changes.ts";
import type { PolicyStore } from "../../records/sts/policy-store.ts";
import {
  type PolicyMode,
  policyIdOf,
  policyIdIn,
  policyRecordHostOf,
  policyRecordOf,
} from "../../records/sts/policy-text.ts";
import type { ServedPolicies } from "../../records/sts/served-policies.ts";
import type { ReportQueryStore } from "../queries/report-query-store.ts";
import { TLS_REPORTS_SUMMED_MAX } from "../queries/report-reader.ts";
import { evidenceText, type TlsEvidence, tlsEvidenceOf } from "./tls-evidence.ts";

/** What hosting can be set to. */
export interface ModeChange {
  readonly mode: PolicyMode | "off";
  /** Enforces before the TLS reports of two weeks are clean. */
  readonly isEarly: boolean;
}

export interface HostingDeps {
  readonly policies: PolicyStore;
  readonly served: ServedPolicies;
  readonly domains: Pick<DomainStore, "findByNumber">;
  readonly reports: Pick<ReportQueryStore, "tlsReports">;
  /** A resolver without a cache. */
  readonly resolver: DnsResolver;
  readonly raise: RaiseAlert;
}

/** Domains of one run of the job, and how many are checked at a time. */
const DUE_MAX = 500;
const CONCURRENCY_MAX = 8;
const UNUSED_MS = 24 * 60 * 60_000;

const refuse = (message: string) => new AppError("conflict", { message });

/** MTA-STS policies that this service serves for domains (RFC 8461): their modes, and the MX hosts that they name. */
export class MtaStsHosting {
  readonly served: ServedPolicies;
  readonly #stopping = new AbortController();

  constructor(
    private readonly runtime: DbClockLog,
    private readonly deps: HostingDeps,
  ) {
    this.served = deps.served;
  }

  /** The policy of a domain; undefined while none is served. */
  find({ number }: Pick<DomainRow, "number">): HostedPolicy | undefined {
    return this.deps.policies.find(number);
  }

  /** The text that is served for a domain; null for none, and for domains of test keys. */
  textOf(domain: Pick<DomainRow, "number" | "mode">): string | null {
    const policy = domain.mode === "live" ? this.find(domain) : undefined;
    return policy === undefined ? null : textOfPolicy(policy);
  }

  /** What TLS reports say about enforcing the policy. */
  evidence({ number }: Pick<DomainRow, "number">): TlsEvidence {
    const policy = this.deps.policies.find(number);
    const reports =
      policy === undefined ? [] : this.deps.reports.tlsReports(number, null, TLS_REPORTS_SUMMED_MAX, null);
    return tlsEvidenceOf(policy, reports, this.runtime.clock.nowMs());
  }

  /**
   * Sets the mode. `findDomain` is called again inside the transaction. Throws `conflict` when the policy cannot be served, enforced or
   * ended yet, with the reason.
   */
  async setMode(findDomain: () => DomainRow, { mode, isEarly }: ModeChange): Promise<void> {
    const domain = findDomain();
    const isNew = this.find(domain) === undefined && mode !== "off";
    if (isNew) refuseUnproven(domain);
    const observed = isNew ? await this.#observe(domain) : null;
    const refusal = await this.runtime.db.commit((tx) => {
      const row = orRefusal(findDomain);
      if (row instanceof AppError) return row;
      return orRefusal(() => this.#setMode(tx, row, { mode, isEarly }, observed));
    });
    if (refusal instanceof AppError) throw refusal;
    this.deps.served.refresh();
  }

  /** Checks the MX records and the TXT record of a domain now. Nothing happens for one without a policy. */
  async check(domain: DomainRow): Promise<void> {
    if (this.find(domain) === undefined) return;
    const observed = await this.#observe(domain);
    // Queries that were not waited for say nothing.
    if (this.#stopping.signal.aborted) return;
    const isChanged = await this.runtime.db.commit((tx) => this.#record(tx, domain.number, observed));
    if (isChanged) this.deps.served.refresh();
  }

  /** Checks the domains that are due. */
  async checkDue(): Promise<void> {
    const { clock, log } = this.runtime;
    const { policies, domains } = this.deps;
    await mapConcurrently(policies.due(clock.nowMs(), DUE_MAX), CONCURRENCY_MAX, async (number) => {
      if (this.#stopping.signal.aborted) return;
      const domain = domains.findByNumber(number);
      if (domain === undefined) return this.#postpone(number);
      try {
        await this.check(domain);
      } catch (error) {
        log.error("check of the MX records of an MTA-STS policy failed", { domain: domain.id, error });
        await this.#postpone(number);
      }
    });
  }

  /** Aborts the checks in progress; no further one is started. */
  stop(): void {
    this.#stopping.abort();
  }

  #setMode(tx: Tx, domain: DomainRow, change: ModeChange, observed: PolicyObservation | null): null {
    const { policies } = this.deps;
    const nowMs = this.runtime.clock.nowMs();
    const { mode } = change;
    const before = policies.find(domain.number);
    if (mode === "off") {
      if (before === undefined) return null;
      refuseEarlyEnd(before, nowMs);
      policies.remove(tx, domain.number);
      return null;
    }
    if (mode === "enforce" && before?.mode !== "enforce" && !change.isEarly)
      this.#refuseEarlyEnforcement(domain, before);
    if (before !== undefined) {
      policies.update(tx, domain.number, afterMode(before, mode, nowMs));
      return null;
    }
    const { exchanges = null, publishedId = null } = observed ?? {};
    if (exchanges === null) throw refuse(`The DNS did not say which MX records ${domain.domain} has. Try again.`);
    const hosts = hostsOf(exchanges);
    if (hosts === null)
      throw refuse(`A policy cannot name the MX records of ${domain.domain}: ${exchanges.join(", ")}.`);
    if (hosts.length === 0) throw refuse(`${domain.domain} has no MX record, so there is no mail to protect.`);
    policies.insert(tx, newPolicy(domain.number, { mode, hosts, publishedId }, nowMs));
    return null;
  }

  #refuseEarlyEnforcement(domain: DomainRow, before: HostedPolicy | undefined): void {
    if (before?.mode !== "testing") {
      const now =
        before === undefined
          ? `No policy is served for ${domain.domain}`
          : `The policy of ${domain.domain} is withdrawn`;
      throw refuse(`${now}. Begin with "testing" and enforce after 14 days of it, or set "early".`);
    }
    const evidence = this.evidence(domain);
    if (evidence.isReady) return;
    throw refuse(
      `${evidenceText(evidence)} Enforce after 14 days with sessions under the policy and without failed ones, or set "early".`,
    );
  }

  /** Returns whether the policy changed, which raises an alert. */
  #record(tx: Tx, number: number, observed: PolicyObservation): boolean {
    const { policies, domains, raise } = this.deps;
    const [domain, before] = [domains.findByNumber(number), policies.find(number)];
    if (domain === undefined || before === undefined) return false;
    const nowMs = this.runtime.clock.nowMs();
    const change = afterCheck(before, observed, nowMs);
    policies.update(tx, number, change);
    const after = { ...before, ...change };
    const [old, text] = [textOfPolicy(before), textOfPolicy(after)];
    if (old === text) return false;
    const id = policyIdOf(text);
    const added = after.hosts.filter((host) => !before.hosts.includes(host));
    const removed = before.hosts.filter((host) => !after.hosts.includes(host));
    const record = { host: policyRecordHostOf(domain.domain), value: policyRecordOf(id) };
    const data = { policy_mode: after.mode, added, removed, policy_id: id, record };
    const summary = `the MTA-STS policy changed; publish id=${id} at ${record.host}`;
    raise(tx, domain, { rule: "mta_sts_changed", subject: "policy", data, summary, cooldown: false }, nowMs);
    return true;
  }

  /** Domains of test keys have one mail host, and the right record. */
  async #observe(domain: DomainRow): Promise<PolicyObservation> {
    const { domain: name } = domain;
    if (domain.mode === "test") {
      const policy = this.find(domain);
      const publishedId = policy === undefined ? "" : policyIdOf(textOfPolicy(policy));
      return { exchanges: [`mail.${name}`], publishedId };
    }
    const resolver = abortableResolver(this.deps.resolver, this.runtime.clock, this.#stopping.signal);
    const [mx, txt] = await Promise.all([
      resolver.resolve(name, "MX"),
      resolver.resolve(policyRecordHostOf(name), "TXT"),
    ]);
    return {
      exchanges: isDefinite(mx.outcome) ? mx.records.map(({ exchange }) => exchange) : null,
      publishedId: isDefinite(txt.outcome) ? policyIdIn(txt.records) : null,
    };
  }

  #postpone(number: number) {
    const { db, clock } = this.runtime;
    return db.commit((tx) => this.deps.policies.update(tx, number, { dueAtMs: clock.nowMs() + UNUSED_MS }));
  }
}

/** The reporting address in the DMARC record proves that the account controls the domain: another account cannot serve its policy. */
const refuseUnproven = ({ domain, status }: DomainRow): void => {
  if (status === "active") return;
  throw refuse(
    `Publish the DMARC record of ${domain} with your reporting address first (status active): it proves that the domain is yours.`,
  );
};

const refuseEarlyEnd = (policy: HostedPolicy, nowMs: number): void => {
  if (policy.mode === "enforce")
    throw refuse(
      "Senders would keep the enforced policy. Withdraw it first with the mode none (RFC 8461 section 8.3).",
    );
  const untilMs = servedUntilMs(policy, nowMs);
  if (untilMs !== null)
    throw refuse(`Senders may hold the enforced policy until ${isoTime(untilMs)}. Serve this one until then.`);
};
