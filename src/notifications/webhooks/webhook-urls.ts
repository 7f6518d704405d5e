import { z } from "zod";
import type { Result } from "../../foundation/base/errors.ts";
import { inSteps } from "../../foundation/base/in-steps.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { DeliveryStore, type WebhookOwner } from "./delivery-store.ts";
import { MoveStore } from "./move-store.ts";

const URL_CHARACTERS_MAX = 2_048;
/** Deliveries about one subject that are moved: more only wait when its endpoint has been down for months. */
const MOVED_OF_SUBJECT_MAX = 10_000;
/** Deliveries to the default URL moved in one transaction. */
const MOVED_AT_ONCE_MAX = 500;

/** The webhook URL of a target, domain or job before and after a change; equal when only other fields changed. */
export interface UrlChange {
  readonly subject: string;
  readonly from: string | null;
  readonly to: string | null;
}

/** A webhook URL in a request body; parsed to its normal form. */
export const webhookUrlSchema = (policy: UrlPolicy) =>
  z
    .string()
    .transform((text, context) => {
      const parsed = policy.parse(text.trim());
      if (parsed.ok) return parsed.value.href;
      context.addIssue({ code: "custom", message: parsed.error.problem });
      return z.NEVER;
    })
    .meta({
      description: "An https URL on the public internet; http and other addresses only where the operator allows them.",
      maxLength: URL_CHARACTERS_MAX,
      examples: ["https://example.com/hook"],
    });

/** The webhook URLs that other parts of the service store with their targets, domains, jobs and accounts. */
export class WebhookUrls {
  readonly #store: DeliveryStore;
  readonly #moves: MoveStore;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly policy: UrlPolicy,
  ) {
    this.#store = new DeliveryStore(runtime.db);
    this.#moves = new MoveStore(runtime.db, this.#store);
  }

  /** The normal form of a URL that events may be sent to. The error is a sentence. */
  parse(text: string): Result<string, string> {
    const parsed = this.policy.parse(text.trim());
    return parsed.ok ? { ok: true, value: parsed.value.href } : { ok: false, error: parsed.error.problem };
  }

  /** Whether deliveries to a URL are disabled because its endpoint responded 410. */
  isDisabled(owner: WebhookOwner, url: string): boolean {
    return this.#store.goneSince(owner, url) !== undefined;
  }

  /** Enables deliveries to a URL again. Call it whenever a user sets a URL. */
  enable(tx: Tx, owner: WebhookOwner, url: string): void {
    this.#store.clearGone(tx, owner, url);
  }

  /** Moves pending deliveries about a subject to its new URL, or cancels them when it has none. */
  move(tx: Tx, owner: WebhookOwner, { subject, from, to }: UrlChange): void {
    if (from === null || from === to) return;
    this.#moves.move(tx, owner, { subject, from, to }, this.runtime.clock.nowMs(), MOVED_OF_SUBJECT_MAX);
  }

  /** The same for the default URL of an account and mode, in small transactions. */
  async moveDefault(owner: WebhookOwner, from: string, to: string | null): Promise<void> {
    const { db, clock } = this.runtime;
    const change = { subject: null, from, to };
    const moveSome = (tx: Tx) => this.#moves.move(tx, owner, change, clock.nowMs(), MOVED_AT_ONCE_MAX);
    await inSteps(() => db.commit(moveSome));
  }
}
