/** Addresses and names of the siege: all of them on loopback, all names below `.test`. */
export const HEALTHY_HOSTS = Array.from({ length: 8 }, (_, n) => `127.21.0.${n + 1}`);
export const PROVIDER_HOSTS = Array.from({ length: 16 }, (_, n) => `127.21.1.${n + 1}`);
/** The hosts that accept connections and never send a banner. */
export const SILENT_HOSTS = Array.from({ length: 500 }, (_, n) => `127.21.${2 + (n >> 8)}.${n & 255}`);
export const REPORT_HOST_IP = "127.21.0.25";
export const REPORT_DOMAIN = "reports-siege.com";

const addressIn = (hosts: readonly string[], n: number): string => hosts[n % hosts.length] ?? "";

/** What the name server says of a name: an address and perhaps a mail host, SERVFAIL, nothing at all, or that it does not exist. */
export type NameAnswer =
  | { readonly kind: "exists"; readonly address: string | null; readonly mailHost: string | null }
  | { readonly kind: "servfail" | "silent" | "nxdomain" };

/**
 * `healthyN.test` has a mail server that answers at once, `silentN.test` one that never does, `sharedN.test` one that all
 * of them share, `muteN.test` is never answered by the name server, `failN.test` with SERVFAIL.
 */
export const answerFor = (name: string): NameAnswer => {
  const [, host, kind, number] = /^(mx\.)?(healthy|silent|shared|mute|fail|provider)(\d*)\.test$/.exec(name) ?? [];
  const n = Number(number);
  const mailHost = host === undefined ? `mx.${name}` : null;
  switch (kind) {
    case "healthy":
      return { kind: "exists", mailHost, address: addressIn(HEALTHY_HOSTS, n) };
    case "silent":
      return { kind: "exists", mailHost, address: addressIn(SILENT_HOSTS, n) };
    case "shared":
      return { kind: "exists", mailHost: "mx.provider.test", address: null };
    case "mute":
      return { kind: "silent" };
    case "fail":
      return { kind: "servfail" };
    default:
      return { kind: "nxdomain" };
  }
};
