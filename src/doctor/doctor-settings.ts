import type { DnsServer } from "../foundation/net/dns.ts";
import type { SmtpRelay } from "../foundation/net/mailer.ts";
import type { PolicyAddress } from "../verify/policy/policy-settings.ts";

/** Whose mail is in a mailbox: the account of this name, or with null the only one. */
interface MailboxAccount {
  readonly account: string | null;
}

/** The settings that the checks read. */
export interface DoctorSettings {
  readonly dataDir: string;
  readonly backupDir: string | null;
  readonly host: string;
  readonly baseUrl: string | null;
  readonly tls: object | null;
  readonly tlsKeyPath: string | null;
  readonly reportTlsKeyPath: string | null;
  readonly imap: MailboxAccount | null;
  readonly bounceImap: MailboxAccount | null;
  readonly imapPasswordFile: string | null;
  readonly bounceImapPasswordFile: string | null;
  readonly heloName: string;
  readonly mailFrom: string;
  readonly smtpPort: number;
  readonly connectTimeoutMs: number;
  readonly replyTimeoutMs: number;
  readonly connectionsMax: number;
  readonly sourceAddresses: readonly string[];
  readonly asnLookup: "dns" | "off";
  readonly geoipPaths: readonly string[];
  readonly reportHost: string | null;
  readonly reportListen: DnsServer | null;
  readonly policyListen: PolicyAddress | null;
  readonly policyNetworks: readonly string[];
  readonly policyAccount: string | null;
  readonly notifyRelay: SmtpRelay | null;
}
