import { isIP } from "node:net";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const baseUrlCheck = doctorFindings("base_url", "Public URL", "running-it#set-it-up");

export type BaseUrlSettings = Pick<DoctorSettings, "baseUrl" | "tls" | "host" | "notifyRelay">;

const publicAddresses = createAddressPolicy([]);

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");

/** Whether a host is this machine itself, by name or address. */
const isLoopback = (host: string): boolean =>
  host === "localhost" ||
  host.endsWith(".localhost") ||
  host === "::1" ||
  (isIP(host) === 4 && host.startsWith("127."));

/** `url`: of the service, as set or derived. Whether everybody can open the links in alert mail, and whether API keys cross the network in clear text. */
export const checkBaseUrl = (settings: BaseUrlSettings, url: string): readonly DoctorCheck[] => {
  const { baseUrl, notifyRelay, tls, host } = settings;
  const where = baseUrl === null ? `POSTWARDEN_BASE_URL is not set, so links point to ${url}` : `Links point to ${url}`;
  const advice = "Set POSTWARDEN_BASE_URL to the public URL, such as https://postwarden.example.com.";
  const clear =
    tls === null && !isLoopback(host)
      ? [
          baseUrlCheck.warn(
            `The service listens on ${host} without TLS, so API keys cross the network in clear text. Set POSTWARDEN_TLS_CERT and POSTWARDEN_TLS_KEY, or set POSTWARDEN_HOST=127.0.0.1 behind a reverse proxy.`,
          ),
        ]
      : [];
  const target = hostOf(url);
  if (isLoopback(target)) {
    const who = `${where}, which only this machine can open`;
    const link =
      notifyRelay === null
        ? baseUrlCheck.ok(`${who}; no alert mail is sent.`)
        : baseUrlCheck.warn(`${who}: links in alert mail do not work. ${advice}`);
    return [link, ...clear];
  }
  if (!url.startsWith("https:"))
    return [
      baseUrlCheck.warn(`${where}, without TLS: API keys would cross the network in clear text. ${advice}`),
      ...clear,
    ];
  if (isIP(target) !== 0 && !publicAddresses.isAllowed(target))
    return [baseUrlCheck.warn(`${where}, a private address: only your own network can open them. ${advice}`), ...clear];
  return [baseUrlCheck.ok(`${where}.`), ...clear];
};
