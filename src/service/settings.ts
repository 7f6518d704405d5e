import { availableParallelism, hostname } from "node:os";
import { resolve } from "node:path";
import { z } from "zod";
import { LOG_LEVELS } from "../foundation/base/log.ts";
import { formatServer } from "../foundation/net/dns.ts";
import { formatRelay } from "../foundation/net/mailer.ts";
import { formatPolicyAddress } from "../verify/policy/policy-settings.ts";
import { formatProxy } from "../foundation/net/socks-connector.ts";
import { bounceSigner, imapAddress, mailboxSettings } from "./imap-settings.ts";
import { formattedSetting, optional, PREFIX, setting, type Shown } from "./setting.ts";
import {
  brandName,
  byNumber,
  cidr,
  dnsServers,
  filePath,
  heloName,
  httpUrl,
  ipAddress,
  isHostName,
  metricsToken,
  commaList,
  listenAddress,
  listId,
  listKeys,
  mailDomain,
  notifyFrom,
  onOff,
  policyAddress,
  policyReason,
  choiceOf,
  reportHost,
  keptDays,
  seconds,
  sender,
  smtpUrl,
  socksProxy,
  wholeNumber,
} from "./setting-parsers.ts";

/** Each is read into memory. */
const GEOIP_FILES_MAX = 8;
const text = z.string().min(1);
const showDays = (days: number | null) => days ?? "off";
const showOnOff = (isOn: boolean): string => (isOn ? "on" : "off");

const ownHostName = (): string => {
  const name = hostname();
  return isHostName(name) ? name : "localhost";
};

const reportMailbox = mailboxSettings("IMAP_", { mail: "report mail", contents: "reports" });
const bounceMailbox = mailboxSettings("BOUNCE_IMAP_", { mail: "mail that came back", contents: "bounces" });

/** Every setting with its default. The manual's page of settings is made from this table. */
export const settings = {
  dataDir: setting(
    "DATA_DIR",
    "Directory of the database, used by Postwarden only.",
    text.default("./data").transform((path) => resolve(path)),
    "./data",
  ),
  backupDir: setting(
    "BACKUP_DIR",
    "Directory of the daily [backups](running-it.md#backups).",
    optional(text.transform((path) => resolve(path))),
  ),
  backupKeep: setting("BACKUP_KEEP", "How many of the daily backups to keep.", wholeNumber(1, 1_000).prefault("7")),
  host: setting("HOST", "Address to listen on.", text.default("127.0.0.1")),
  port: setting("PORT", "Port to listen on; 0 selects a free one.", wholeNumber(0, 65_535).prefault("8080")),
  baseUrl: setting(
    "BASE_URL",
    "Public URL of the service, for the OpenAPI document and links in alert mail and messages.",
    optional(httpUrl),
    "derived from the address and port",
  ),
  brandName: setting(
    "BRAND_NAME",
    "What pages, mail and authenticator apps call the service, up to 40 characters.",
    brandName.default("Postwarden"),
  ),
  brandLogoPath: setting(
    "BRAND_LOGO",
    "SVG or PNG file of at most 100 kB that pages show in place of mark and name; it is read at the start.",
    optional(text),
  ),
  tlsCertPath: setting("TLS_CERT", "PEM file of the certificate: serve HTTPS.", optional(text)),
  tlsKeyPath: setting("TLS_KEY", "PEM file of the certificate's key.", optional(text)),
  trustedProxies: setting(
    "TRUSTED_PROXIES",
    "Networks (CIDR) whose `X-Forwarded-For` names the client in the log.",
    commaList(cidr).prefault(""),
  ),
  dnsServers: formattedSetting(
    "DNS_SERVERS",
    "Name servers to ask: comma-separated `ip`, `ip:port`, `[ipv6]:port`.",
    optional(dnsServers),
    (servers) => servers?.map(formatServer) ?? null,
    "those of the system",
  ),
  heloName: setting(
    "HELO_NAME",
    "Name in EHLO.",
    heloName.default(() => ownHostName()),
    "the host name",
  ),
  mailFrom: formattedSetting(
    "MAIL_FROM",
    "Envelope sender; `<>` is the null sender of bounces.",
    sender.default(""),
    (address) => (address === "" ? "<>" : address),
  ),
  smtpPort: setting("SMTP_PORT", "Port of mail hosts.", wholeNumber(1, 65_535).prefault("25")),
  connectTimeoutMs: setting(
    "SMTP_CONNECT_TIMEOUT_MS",
    "Timeout of the connection to a mail host.",
    wholeNumber(100, 120_000).prefault("10000"),
  ),
  replyTimeoutMs: setting(
    "SMTP_REPLY_TIMEOUT_MS",
    "Timeout of each reply of a mail host.",
    wholeNumber(100, 600_000).prefault("30000"),
  ),
  retryWaitsS: setting(
    "GREYLIST_RETRIES_S",
    "Waits before retries after a temporary refusal (unless the server names one), a DNS failure or a local failure.",
    commaList(seconds).prefault("60,300,900,1800"),
  ),
  connectionsMax: setting(
    "MAX_CONNECTIONS",
    "Concurrent SMTP sessions in total.",
    wholeNumber(1, 20_000).prefault("500"),
  ),
  connectionsPerHostMax: setting(
    "MAX_CONNECTIONS_PER_HOST",
    "Concurrent SMTP sessions with one mail host.",
    wholeNumber(1, 1_000).prefault("4"),
  ),
  connectionsPerEgressMax: setting(
    "MAX_CONNECTIONS_PER_EGRESS",
    "Concurrent SMTP sessions from each source address or proxy.",
    optional(wholeNumber(1, 20_000)),
    "no limit",
  ),
  rcptPerConnectionMax: setting(
    "MAX_RCPT_PER_CONNECTION",
    "Recipients per connection.",
    wholeNumber(2, 10_000).prefault("50"),
  ),
  sourceAddresses: setting(
    "SOURCE_ADDRESSES",
    "Addresses of this machine to connect from, in turn.",
    commaList(ipAddress).prefault(""),
    "the choice of the system",
  ),
  socksProxies: formattedSetting(
    "SOCKS_PROXIES",
    "`socks5://user:password@host:port`: further egress, in turn.",
    commaList(socksProxy, byNumber).prefault(""),
    (all) => all.map(formatProxy),
  ),
  probeAllowNetworks: setting(
    "PROBE_ALLOW_NETWORKS",
    "Networks (CIDR) that are not public but may be connected to.",
    commaList(cidr).prefault(""),
  ),
  webhookAllowNetworks: setting(
    "WEBHOOK_ALLOW_NETWORKS",
    "Networks (CIDR) that are not public but may receive webhooks; hosts in them may have http URLs.",
    commaList(cidr).prefault(""),
  ),
  useProxyEnv: formattedSetting(
    "USE_PROXY_ENV",
    "`on` sends webhooks through `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` (except `NO_PROXY`). `NODE_TLS_REJECT_UNAUTHORIZED` never turns certificate checks off.",
    onOff.prefault("off"),
    showOnOff,
  ),
  dnsblSignal: formattedSetting(
    "DNSBL_SIGNAL",
    "`off`: verifications do not query blocklists about the domain and its mail hosts.",
    onOff.prefault("on"),
    showOnOff,
  ),
  blocklistCataloguePath: setting(
    "BLOCKLIST_CATALOGUE",
    "JSON file that replaces the catalogue of blocklists.",
    optional(text),
    "built in",
  ),
  blocklistKeys: formattedSetting(
    "BLOCKLIST_KEYS",
    "`list=key` pairs for lists that require a key.",
    listKeys.prefault(""),
    (keys) => [...keys.keys()],
  ),
  blocklistsEnable: setting(
    "BLOCKLISTS_ENABLE",
    "Ids of lists to turn on; with an unknown id Postwarden does not start.",
    commaList(listId).prefault(""),
  ),
  blocklistsDisable: setting(
    "BLOCKLISTS_DISABLE",
    "Ids of lists to turn off; with an unknown id Postwarden does not start.",
    commaList(listId).prefault(""),
  ),
  blocklistRetentionDays: setting(
    "BLOCKLIST_RETENTION_DAYS",
    "Retention of checks; those in which a listing began or ended are kept at least 400 days.",
    wholeNumber(1, 3_650).prefault("90"),
  ),
  verificationRetentionDays: formattedSetting(
    "VERIFICATION_RETENTION_DAYS",
    "[Retention](running-it.md#retention) of single verifications.",
    keptDays.prefault("400"),
    showDays,
  ),
  evidenceRetentionDays: formattedSetting(
    "EVIDENCE_RETENTION_DAYS",
    "Retention of the evidence of single verifications and lists.",
    keptDays.prefault("30"),
    showDays,
  ),
  listRetentionDays: formattedSetting(
    "LIST_RETENTION_DAYS",
    "Retention of lists with their results.",
    keptDays.prefault("400"),
    showDays,
  ),
  listFileRetentionDays: formattedSetting(
    "LIST_FILE_RETENTION_DAYS",
    "Retention of the other columns of the files of lists.",
    keptDays.prefault("30"),
    showDays,
  ),
  reportMailRetentionDays: formattedSetting(
    "REPORT_MAIL_RETENTION_DAYS",
    "Retention of report mails and uploads of no domain, and `raw_retention_days` of new domains.",
    keptDays.prefault("90"),
    showDays,
  ),
  asnLookup: setting(
    "ASN_LOOKUP",
    "Where the networks of addresses are looked up: `dns` ([Team Cymru](dmarc-senders.md#networks-and-countries)) or `off`.",
    choiceOf(["dns", "off"]).default("dns"),
  ),
  geoipPaths: setting(
    "GEOIP_DB",
    "Up to 8 MMDB files with AS and country of addresses.",
    commaList(filePath)
      .refine(({ length }) => length <= GEOIP_FILES_MAX, `must name at most ${GEOIP_FILES_MAX} files`)
      .prefault(""),
  ),
  reportHost: setting("REPORT_HOST", "Mail domain of report addresses.", optional(reportHost)),
  reportListen: formattedSetting(
    "REPORT_LISTEN",
    "`ip:port` or `[ipv6]:port` that receives the mail of report addresses.",
    optional(listenAddress),
    (address) => address && formatServer(address),
  ),
  reportTlsCertPath: setting(
    "REPORT_TLS_CERT",
    "PEM file of the certificate for STARTTLS of report mail.",
    optional(text),
    "self-signed",
  ),
  reportTlsKeyPath: setting("REPORT_TLS_KEY", "PEM file of the key of that certificate.", optional(text)),
  imapUrl: reportMailbox.url,
  imapPasswordFile: reportMailbox.passwordFile,
  imapTokenCommand: reportMailbox.tokenCommand,
  imapCaFile: reportMailbox.caFile,
  imapAfter: reportMailbox.after,
  imapAccount: reportMailbox.account,
  imapAddress: setting(
    "IMAP_ADDRESS",
    "Address of the mailbox: without `POSTWARDEN_REPORT_HOST`, domains of its account report to it.",
    optional(imapAddress),
    "the user, if it is an address",
  ),
  policyListen: formattedSetting(
    "POLICY_LISTEN",
    "`ip:port` or the path of a Unix socket where [mail servers ask about recipients](outgoing-mail.md).",
    optional(policyAddress),
    (address) => address && formatPolicyAddress(address),
  ),
  policyNetworks: setting(
    "POLICY_NETWORKS",
    "Networks (CIDR) that may ask, beside this machine.",
    commaList(cidr).prefault(""),
    "only this machine",
  ),
  policyAccount: setting(
    "POLICY_ACCOUNT",
    "Account whose results answer, and that is charged for verifications of recipients.",
    optional(text),
    "the only account",
  ),
  policyMode: setting(
    "POLICY_MODE",
    "`reject`, or `warn`: the mail server logs a warning instead.",
    choiceOf(["reject", "warn"]).default("reject"),
  ),
  policyReject: setting(
    "POLICY_REJECT",
    "Results that reject a recipient: `mailbox_not_found`, `domain_not_found`, `mailbox_disabled`, `no_mail_server`, `null_mx`.",
    commaList(policyReason).prefault("mailbox_not_found,domain_not_found"),
  ),
  policySuppression: formattedSetting(
    "POLICY_SUPPRESSION",
    "`off`: the suppression list does not reject.",
    onOff.prefault("on"),
    showOnOff,
  ),
  policyMaxAgeDays: setting("POLICY_MAX_AGE_DAYS", "Older results do not reject.", wholeNumber(1, 400).prefault("30")),
  policyVerifyPerDay: setting(
    "POLICY_VERIFY_PER_DAY",
    "Unknown recipients that are verified in the background in a day (UTC); `0`: none.",
    wholeNumber(0, 1_000_000).prefault("1000"),
  ),
  bounceImapUrl: bounceMailbox.url,
  bounceImapPasswordFile: bounceMailbox.passwordFile,
  bounceImapTokenCommand: bounceMailbox.tokenCommand,
  bounceImapCaFile: bounceMailbox.caFile,
  bounceImapAfter: bounceMailbox.after,
  bounceImapAccount: bounceMailbox.account,
  bounceImapSignedBy: setting(
    "BOUNCE_IMAP_SIGNED_BY",
    "Domains (`d=`) of your DKIM signatures, which [prove that a returned message was yours](outgoing-mail.md#a-bounce-mailbox); or `anyone`.",
    commaList(bounceSigner).prefault(""),
  ),
  notifyRelay: formattedSetting(
    "NOTIFY_SMTP_URL",
    "Relay of alert mail: `smtp://user:password@host:port` or `smtps://`.",
    optional(smtpUrl),
    (relay) => relay && formatRelay(relay),
  ),
  notifyFrom: setting("NOTIFY_FROM", "The sender's address of alert mail.", optional(notifyFrom)),
  notifyDomains: setting(
    "NOTIFY_DOMAINS",
    "Domains that alert mail may be sent to; other recipients are refused with 400.",
    commaList(mailDomain).prefault(""),
    "all",
  ),
  metricsToken: formattedSetting(
    "METRICS_TOKEN",
    "Enables [`/metrics`](running-it.md#metrics) for requests with this bearer token (32 characters or more).",
    optional(metricsToken),
    (token) => token && "(set)",
  ),
  workers: setting(
    "WORKERS",
    "`1`: mail servers, and the reading of DMARC reports, have a [thread](capacity.md#a-second-core) beside that of requests. `0`: one thread does everything.",
    wholeNumber(0, 1).default(() => (availableParallelism() > 1 ? 1 : 0)),
    "`1`; `0` on a machine with one core",
  ),
  docs: formattedSetting("DOCS", "`off`: no manual at `/docs`.", onOff.prefault("on"), showOnOff),
  logLevel: setting("LOG_LEVEL", "`debug`, `info`, `warn`, `error` or `silent`.", choiceOf(LOG_LEVELS).default("info")),
};

/** The rows of the manual: each setting with its default in words. */
export const settingRows = Object.values(settings).map(({ name, description, schema, show, defaultWords }) => {
  // Each setting formats its own value; a loop over all of them cannot express that in types.
  const shown = () => (show as (value: unknown) => Shown)(schema.parse(undefined));
  const text = defaultWords ?? String(shown() ?? "");
  return { name: PREFIX + name, description, defaultText: text === "" ? "none" : text };
});
