import { ok, type Result } from "../../foundation/base/errors.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { BackgroundChecks, type BackgroundDeps } from "./background-checks.ts";
import { PolicyListener, type PolicyListenerDeps } from "./policy-listener.ts";
import type { PolicyAddress, PolicySettings } from "./policy-settings.ts";
import { RecipientStore } from "./recipient-store.ts";
import { RecipientPolicy, type RecipientPolicyDeps } from "./recipient-policy.ts";

/** What counts answers, refused connections and verifications. */
export interface PolicyWatch extends Pick<PolicyListenerDeps, "answered" | "refused"> {
  readonly background: BackgroundDeps["count"];
}

export interface PolicySliceDeps
  extends Pick<RecipientPolicyDeps, "matchSuppression" | "accountOf">, Pick<BackgroundDeps, "checks"> {
  readonly watch: PolicyWatch;
}

/** The policy service: mail servers ask it about the recipients of outgoing mail. */
export class PolicySlice {
  readonly background: BackgroundChecks;
  readonly recipients: RecipientPolicy;
  readonly #listener: PolicyListener;

  constructor(
    runtime: Runtime,
    private readonly settings: PolicySettings,
    { checks, watch, ...deps }: PolicySliceDeps,
  ) {
    const store = new RecipientStore(runtime.db);
    const { clock, log } = runtime;
    const { policyVerifyPerDay: perDay, policyNetworks: networks } = settings;
    this.background = new BackgroundChecks(runtime, { checks, store, perDay, count: watch.background });
    this.recipients = new RecipientPolicy(runtime, settings, { ...deps, store, background: this.background });
    this.#listener = new PolicyListener({ clock, log, policy: this.recipients, networks, ...watch });
  }

  get connections(): number {
    return this.#listener.connections;
  }

  /** What an operator must look at. */
  findings(): readonly string[] {
    const finding = this.settings.policyListen === null ? null : this.recipients.finding();
    return finding === null ? [] : [finding];
  }

  /** Begins to listen, and returns where; null when no address is set. The error is a sentence. */
  listen(): Promise<Result<PolicyAddress | null, string>> {
    const { policyListen } = this.settings;
    return policyListen === null ? Promise.resolve(ok(null)) : this.#listener.listen(policyListen);
  }

  stop(): Promise<void> {
    this.#listener.close();
    return this.background.stop();
  }
}
