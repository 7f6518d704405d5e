import { EXITS, POSTGREY, POSTGREY_LONG } from "./hosts.ts";
import type { PostfixHost } from "./hosts.ts";
import { ADDRESS_LIST, NAME_LIST } from "./rbldnsd.ts";

const greylistedBy = (postgrey: { readonly ip: string; readonly port: number }): string =>
  `smtpd_recipient_restrictions=reject_unauth_destination, check_policy_service inet:${postgrey.ip}:${postgrey.port}`;

const BLOCKS_EVERYBODY =
  "smtpd_client_restrictions=check_client_access static:{554 5.7.1 Service unavailable; client host blocked using bl.lab.example}";
const REFUSES_SENDER =
  "smtpd_sender_restrictions=check_sender_access static:{550 5.1.8 Domain of sender address does not exist}";
const REFUSES_HELO =
  "smtpd_helo_restrictions=check_helo_access static:{550 5.7.1 Your HELO name does not resolve to your address}";
const REFUSES_LISTED = `smtpd_client_restrictions=reject_rbl_client ${ADDRESS_LIST}`;
const NEEDS_REVERSE = "smtpd_client_restrictions=reject_unknown_client_hostname";
const WELCOMES_EXITS = `smtpd_client_restrictions=check_client_access inline:{${EXITS.welcome}=OK, ${EXITS.behindSocks}=OK, ${EXITS.behindSecondSocks}=OK}, reject`;
const AT_ONCE = "smtpd_delay_reject=no";
const NEEDS_TLS = "smtpd_tls_security_level=encrypt";
const TAKES_EVERYTHING = "virtual_mailbox_maps=static:all";

/**
 * One listener per behaviour: what its `smtpd` does otherwise than `main.cf`. A value may hold spaces. The restriction
 * lists repeat `reject_unauth_destination`, because Postfix refuses to run an smtpd that relays for everybody.
 */
export const SMTPD: Readonly<Partial<Record<PostfixHost, readonly string[]>>> = {
  main: [],
  grey: [greylistedBy(POSTGREY)],
  greylong: [greylistedBy(POSTGREY_LONG)],
  soft: ["unknown_virtual_mailbox_reject_code=450"],
  tempfail: ["virtual_mailbox_maps=fail:lab"],
  storage: ["queue_minfree=4000000000000000"],
  acceptall: [TAKES_EVERYTHING],
  datareject: [TAKES_EVERYTHING, "smtpd_data_restrictions=reject"],
  noutf8: ["smtputf8_enable=no"],
  // who we are
  blocked: [BLOCKS_EVERYBODY],
  blockedatconnect: [AT_ONCE, BLOCKS_EVERYBODY],
  dnsblconnect: [AT_ONCE, REFUSES_LISTED],
  dnsblhelo: [AT_ONCE, `smtpd_helo_restrictions=reject_rhsbl_helo ${NAME_LIST}`],
  dnsblrcpt: [`smtpd_recipient_restrictions=reject_unauth_destination, reject_rbl_client ${ADDRESS_LIST}`],
  dnsblsoft: [REFUSES_LISTED, "maps_rbl_reject_code=450"],
  dnsblclean: [REFUSES_LISTED],
  reverse: ["smtpd_peername_lookup=yes", NEEDS_REVERSE],
  reversehard: ["smtpd_peername_lookup=yes", NEEDS_REVERSE, "unknown_client_reject_code=550"],
  reversegood: ["smtpd_peername_lookup=yes", NEEDS_REVERSE],
  exitonly: [WELCOMES_EXITS],
  helo: [REFUSES_HELO],
  heloatehlo: [AT_ONCE, REFUSES_HELO],
  helogood: ["smtpd_helo_restrictions=reject_non_fqdn_helo_hostname, reject_unknown_helo_hostname"],
  sender: [AT_ONCE, REFUSES_SENDER],
  senderatrcpt: [REFUSES_SENDER],
  // how much we ask
  rate: ["smtpd_client_connection_rate_limit=1"],
  concurrency: ["smtpd_client_connection_count_limit=1", "smtpd_timeout=3600s"],
  recipientrate: ["smtpd_client_recipient_rate_limit=1"],
  messagerate: ["smtpd_client_message_rate_limit=1"],
  onercpt: ["smtpd_recipient_limit=1"],
  hardlimit: ["smtpd_hard_error_limit=1"],
  // TLS
  tls: [NEEDS_TLS],
  tlsexpired: [NEEDS_TLS, "smtpd_tls_cert_file=$data_directory/../expired.crt"],
  tls13: [NEEDS_TLS, "smtpd_tls_mandatory_protocols=TLSv1.3"],
  tls10: [NEEDS_TLS, "smtpd_tls_mandatory_protocols=TLSv1", "tls_medium_cipherlist=ALL:@SECLEVEL=0"],
  tlsatrcpt: ["smtpd_tls_security_level=may", "smtpd_client_restrictions=reject_plaintext_session"],
  tlsclientcert: [NEEDS_TLS, "smtpd_tls_req_ccert=yes"],
  // where our own sender lives
  ourmx: [],
  ourmxempty: ["virtual_mailbox_maps=inline:{nobody@nowhere=lab}"],
};

/** What a list says after the greet wait comes too late for postscreen. */
const LISTED_SITES = [`postscreen_dnsbl_sites=${ADDRESS_LIST}`, "postscreen_greet_wait=2s"];

/** Hosts behind postscreen, which hands those that pass its tests to an `smtpd` like `main`. */
export const POSTSCREEN: Readonly<Partial<Record<PostfixHost, readonly string[]>>> = {
  greets: ["postscreen_greet_wait=2s", "postscreen_greet_action=enforce"],
  deepscreen: [
    ...["postscreen_greet_wait=1s", "postscreen_greet_action=enforce"],
    ...["postscreen_pipelining_enable=yes", "postscreen_pipelining_action=enforce"],
    ...["postscreen_non_smtp_command_enable=yes", "postscreen_bare_newline_enable=yes"],
  ],
  screened: [...LISTED_SITES, "postscreen_dnsbl_action=enforce"],
  screenedout: [...LISTED_SITES, "postscreen_dnsbl_action=drop"],
};
