import { isIP } from "node:net";
import { z } from "zod";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import { parseListKeys } from "../blocklist/lists/blocklist.ts";
import { parseAddress } from "../foundation/mail/address.ts";
import { parseDomain } from "../foundation/mail/domain.ts";
import type { SmtpRelay } from "../foundation/net/mailer.ts";
import { safeLine } from "../foundation/base/visible-text.ts";
import { parseCidr } from "../foundation/base/cidr.ts";
import { parseDnsServers } from "../foundation/net/resolv-conf.ts";
import { POLICY_REASONS, type PolicyAddress, type PolicyReason } from "../verify/policy/policy-settings.ts";
import type { SocksProxy } from "../foundation/net/socks-connector.ts";

const PORT_MAX = 65_535;
/** `sun_path` has 108 bytes with its final zero (unix(7)). */
const SOCKET_PATH_BYTES_MAX = 107;
/** Receivers look up names with further labels in front, which must fit 253 octets. */
const REPORT_HOST_OCTETS_MAX = 200;

/** A whole number within bounds. */
export const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .refine((text) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max, {
      error: ({ input }) => `${quote(input)} is not a whole number from ${min} to ${max}`,
    })
    .transform(Number);

const KEPT_DAYS_MAX = 36_500;

/** Days for which something is kept; null (`0` or `off`): for ever. */
export const keptDays = z
  .string()
  .refine((text) => text === "off" || (/^\d{1,5}$/.test(text) && Number(text) <= KEPT_DAYS_MAX), {
    error: ({ input }) =>
      `${quote(input)} is not a whole number of days from 1 to ${KEPT_DAYS_MAX}, or off to keep the data`,
  })
  .transform((text) => (text === "off" ? null : Number(text) || null));

/** A comma list. An invalid item is quoted in the error, or named by `name` where it may hold a secret. */
export const commaList = <T>(
  parse: (item: string) => Result<T, string>,
  name: (item: string, at: number) => string = quote,
) =>
  z.string().transform((text, context) => {
    const items: T[] = [];
    for (const [at, part] of text.split(",").entries()) {
      const item = part.trim();
      if (item === "") continue;
      const parsed = parse(item);
      if (parsed.ok) items.push(parsed.value);
      else context.addIssue({ code: "custom", message: `${name(item, at)} ${parsed.error}` });
    }
    return items;
  });

const quote = (item: unknown): string => JSON.stringify(item);

/** Names an item by its position, for lists whose items hold secrets. */
export const byNumber = (_item: string, at: number): string => `entry ${at + 1}`;

/** A bearer token (RFC 6750 §2.1) that cannot be guessed. The error does not quote it. */
export const metricsToken = z
  .string()
  .regex(
    /^[A-Za-z0-9\-._~+/]{32,256}=*$/,
    "must be 32 to 256 letters, digits or -._~+/ (for example the output of `openssl rand -hex 32`)",
  );

const BRAND_CHARACTERS_MAX = 40;

/** A name on one line, without what is invisible. */
export const brandName = z
  .string()
  .trim()
  .min(1)
  .max(BRAND_CHARACTERS_MAX)
  .refine((name) => safeLine(name) === name, "must not have control or invisible characters");

/** Seconds of a retry schedule. */
export const seconds = (item: string): Result<number, string> => {
  const value = Number(item);
  return /^\d+$/.test(item) && value >= 1 && value <= 86_400
    ? ok(value)
    : err("is not a number of seconds from 1 to 86400");
};

/** A network as address/bits. */
export const cidr = (item: string): Result<string, string> => {
  const parsed = parseCidr(item);
  return parsed.ok ? ok(item) : err("is not a network in CIDR notation, such as 10.0.0.0/8");
};

/** The domain of addresses, in lower-case A-labels. */
export const mailDomain = (item: string): Result<string, string> => {
  const parsed = parseDomain(item);
  return parsed.ok ? ok(parsed.value.ascii) : err("is not a domain such as example.com");
};

/** An IP address of this machine. */
export const ipAddress = (item: string): Result<string, string> =>
  isIP(item) === 0 ? err("is not an IP address such as 192.0.2.1 or 2001:db8::1") : ok(item);

const PROXY_PORT = 1080;
/** RFC 1929 §2: one octet for the length of each. */
const CREDENTIAL_OCTETS_MAX = 255;

const decoded = (text: string): string | null => {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
};

const isCredential = (text: string | null): text is string =>
  text !== null && Buffer.byteLength(text) <= CREDENTIAL_OCTETS_MAX;

/** `socks5://user:password@host:port`, user and password percent-encoded; they and the port are optional. */
export const socksProxy = (item: string): Result<SocksProxy, string> => {
  const url = URL.canParse(item) ? new URL(item) : null;
  const isBare = url !== null && (url.pathname === "" || url.pathname === "/") && url.search === "" && url.hash === "";
  const host = url?.hostname.replace(/^\[(.*)\]$/, "$1") ?? "";
  const isProxy =
    isBare && /^socks5h?:$/.test(url.protocol) && url.port !== "0" && (isIP(host) > 0 || isHostName(host));
  if (!isProxy) return err("is not a proxy URL such as socks5://user:password@192.0.2.1:1080; write a comma as %2C");
  const [user, password] = [decoded(url.username), decoded(url.password)];
  if (!isCredential(user) || !isCredential(password) || (user === "" && password !== "")) {
    return err(
      "has an invalid user or password: use percent-encoded UTF-8 of at most 255 bytes, and no password without a user",
    );
  }
  const port = url.port === "" ? PROXY_PORT : Number(url.port);
  return ok({ host, port, user: user === "" ? null : user, password: password === "" ? null : password });
};

/** An http or https URL without query, credentials or trailing slash. */
export const httpUrl = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.search === "" && url.hash === "" && url.username === "") {
    return text.replace(/(?<!\/)\/+$/, "");
  }
  context.addIssue({ code: "custom", message: "must be an http or https URL without a query and without credentials" });
  return z.NEVER;
});

const HOST_NAME_FORM = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** Whether a text is a host name in letters, digits and hyphens. */
export const isHostName = (text: string): boolean => HOST_NAME_FORM.test(text);

/** What EHLO may say: a host name or an address literal (RFC 5321 §4.1.3: `[192.0.2.1]`, `[IPv6:2001:db8::1]`). */
export const heloName = z.string().refine(
  (text) => {
    const literal = /^\[(?<ip6>IPv6:)?(?<address>.+)\]$/i.exec(text)?.groups;
    return literal === undefined
      ? isHostName(text)
      : isIP(literal.address ?? "") === (literal.ip6 === undefined ? 4 : 6);
  },
  {
    error: ({ input }) =>
      `${quote(input)} is not a host name such as mail.example.com, nor an address literal such as [192.0.2.1] or [IPv6:2001:db8::1]`,
  },
);

/** An envelope sender; empty or `<>` is the null sender, read as an empty text. */
export const sender = z
  .string()
  .trim()
  .refine((text) => text === "" || text === "<>" || parseAddress(text).ok, {
    error: ({ input }) => `${quote(input)} is not an email address; the null sender is <>`,
  })
  .transform((text) => (text === "<>" ? "" : text));

/** The domain of report addresses, in lower-case A-labels, with a dot: single labels receive no mail. */
export const reportHost = z
  .string()
  .trim()
  .transform((text, context) => {
    const parsed = parseDomain(text.replace(/\.$/, ""));
    if (parsed.ok && parsed.value.ascii.includes(".") && parsed.value.ascii.length <= REPORT_HOST_OCTETS_MAX) {
      return parsed.value.ascii;
    }
    context.addIssue({
      code: "custom",
      message: `${quote(text)} is not a domain such as reports.example.com of at most ${REPORT_HOST_OCTETS_MAX} characters`,
    });
    return z.NEVER;
  });

/** An IP address and a port to listen on: `0.0.0.0:25`, `[::]:25`. */
export const listenAddress = z.string().transform((text, context) => {
  const parts = /^(?:\[(?<ip6>[^\]]+)\]|(?<ip4>[^:]+)):(?<port>\d{1,5})$/.exec(text.trim())?.groups;
  const address = parts?.ip6 ?? parts?.ip4 ?? "";
  const port = Number(parts?.port ?? -1);
  if (isIP(address) === (parts?.ip6 === undefined ? 4 : 6) && port >= 0 && port <= PORT_MAX) return { address, port };
  context.addIssue({
    code: "custom",
    message: `${quote(text)} is not an IP address with a port, such as 0.0.0.0:25 or [::]:25`,
  });
  return z.NEVER;
});

/** Where the policy service listens: an address with a port, or the absolute path of a Unix socket. */
export const policyAddress = z.string().transform((text, context): PolicyAddress => {
  const path = text.trim();
  if (path.startsWith("/") && Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX && !path.endsWith("/")) return { path };
  const address = listenAddress.safeParse(text);
  if (address.success) return address.data;
  context.addIssue({
    code: "custom",
    message: `${quote(text)} is not an IP address with a port, such as 127.0.0.1:10040, nor the path of a Unix socket of at most ${SOCKET_PATH_BYTES_MAX} bytes`,
  });
  return z.NEVER;
});

/** A result that may reject a recipient. */
export const policyReason = (item: string): Result<PolicyReason, string> => {
  const reason = POLICY_REASONS.find((one) => one === item);
  return reason === undefined ? err(`is not one of ${POLICY_REASONS.join(", ")}`) : ok(reason);
};

/** A comma list of name servers. */
export const dnsServers = z.string().transform((text, context) => {
  const parsed = parseDnsServers(text);
  if (parsed.ok) return parsed.value;
  context.addIssue({ code: "custom", message: parsed.error.problem });
  return z.NEVER;
});

/** The id of a blocklist; whether it exists is checked against the catalogue. */
export const listId = (text: string): Result<string, string> =>
  /^[a-z0-9-]{1,64}$/.test(text) ? ok(text) : err("is not a list id of lower-case letters, digits and hyphens");

/** A comma list of `list=key`. */
export const listKeys = z.string().transform((text, context) => {
  const parsed = parseListKeys(text);
  if (parsed.ok) return parsed.value;
  for (const message of parsed.error) context.addIssue({ code: "custom", message });
  return z.NEVER;
});

/** A path of a comma list: any text. */
export const filePath = (text: string): Result<string, string> => ok(text);

/** One of a few words. */
export const choiceOf = <const Words extends readonly string[]>(words: Words) =>
  z.enum(words, { error: ({ input }) => `${quote(input)} is not one of ${words.join(", ")}` });

/** `on` or `off`. */
export const onOff = choiceOf(["on", "off"]).transform((text) => text === "on");

const SUBMISSION_PORT = 587;
const SUBMISSIONS_PORT = 465;

/** `smtp://user:password@host:port` (STARTTLS where offered) or `smtps://…`; all but the host is optional. */
export const smtpUrl = z.string().transform((text, context): SmtpRelay => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isBare = url !== null && /^\/?$/.test(url.pathname) && url.search === "" && url.hash === "";
  if (url === null || !isBare || !/^smtps?:$/.test(url.protocol) || url.hostname === "") {
    context.addIssue({ code: "custom", message: "must be a URL such as smtp://user:password@mail.example.com:587" });
    return z.NEVER;
  }
  const implicitTls = url.protocol === "smtps:";
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (implicitTls ? SUBMISSIONS_PORT : SUBMISSION_PORT) : Number(url.port),
    implicitTls,
    user: url.username === "" ? null : unescapeLeniently(url.username),
    password: url.password === "" ? null : unescapeLeniently(url.password),
  };
});

/** Decodes percent escapes; a percent sign that begins none is kept, because it may be part of a password. */
const unescapeLeniently = (text: string): string =>
  new URLSearchParams(`text=${text.replaceAll("+", "%2B").replaceAll("&", "%26")}`).get("text") ?? text;

/** The address that alert mail comes from. */
export const notifyFrom = z
  .string()
  .trim()
  .refine((text) => parseAddress(text).ok, {
    error: ({ input }) => `${quote(input)} is not an email address such as postwarden@example.com`,
  });
