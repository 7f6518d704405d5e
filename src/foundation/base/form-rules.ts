/** What a publishable key may do: from which origins, and how many addresses it verifies. */
export interface FormRules {
  readonly origins: readonly string[];
  /** Addresses that one visitor may have verified in an hour; a visitor is an IPv4 address, or the /64 of an IPv6 address. */
  readonly visitorPerHour: number;
  /** Addresses in a day (UTC), from all visitors together. */
  readonly perDay: number;
}
