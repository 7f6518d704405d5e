/** What a publishable key may do: from which origins, and how many addresses it verifies. */
export interface FormRules {
  /** The key itself: it stands in pages that anyone can read, so it is no secret. */
  readonly key: string;
  readonly origins: readonly string[];
  /** Addresses that one visitor may have verified in an hour; a visitor is an IPv4 address, or the /64 of an IPv6 address. */
  readonly visitorPerHour: number;
  /** Addresses in a day (UTC), from all visitors together. */
  readonly perDay: number;
  /** `domain`: no mail server is asked, and nothing is stored or charged. */
  readonly check: FormCheck;
}

/** How far a publishable key verifies: up to the mailbox, or only syntax, domain and disposable domains. */
export const FORM_CHECKS = ["mailbox", "domain"] as const;
export type FormCheck = (typeof FORM_CHECKS)[number];
