import type { DeliveryStatus } from "../../notifications/webhooks/delivery-store.ts";
import type { EndpointState, UrlUse } from "../../notifications/webhooks/endpoints.ts";
import type { Kind } from "../components/badge.tsx";
import type { IconName } from "../components/icon.tsx";
import { countText } from "../components/number.tsx";

interface StateWords {
  readonly kind: Kind;
  /** Instead of the icon of the kind. */
  readonly icon?: IconName;
  readonly label: string;
}

/** The states of a URL in words. */
export const ENDPOINT_WORDS: Readonly<Record<EndpointState, StateWords>> = {
  disabled: { kind: "bad", label: "Disabled" },
  failing: { kind: "bad", label: "Failing" },
  paused: { kind: "warn", label: "Paused" },
  unused: { kind: "unknown", label: "Not used yet" },
  working: { kind: "ok", label: "Working" },
  unset: { kind: "unknown", label: "No longer set" },
};

/** The states of a delivery in words. */
export const DELIVERY_WORDS: Readonly<Record<DeliveryStatus, StateWords>> = {
  pending: { kind: "unknown", icon: "clock", label: "Waiting" },
  delivered: { kind: "ok", label: "Delivered" },
  rejected: { kind: "bad", label: "Rejected" },
  failed: { kind: "bad", label: "Failed" },
  cancelled: { kind: "unknown", label: "Cancelled" },
};

const USE_WORDS: Readonly<Record<UrlUse, (count: number) => string>> = {
  account: () => "all events",
  targets: (count) => countText(count, "blocklist target"),
  domains: (count) => countText(count, "DMARC domain"),
  lists: (count) => countText(count, "list"),
};

/** What sends its events to a URL: "all events, 2 DMARC domains". */
export const usesText = (uses: ReadonlyArray<{ readonly use: UrlUse; readonly count: number }>): string =>
  uses.length === 0 ? "nothing now" : uses.map(({ use, count }) => USE_WORDS[use](count)).join(", ");
