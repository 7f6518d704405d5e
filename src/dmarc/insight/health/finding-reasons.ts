import type { HealthCode } from "./health-schema.ts";

const NO_SPF =
  "Without a working SPF record, receivers cannot tell your servers from others by their address, and DMARC depends on DKIM alone.";
const PERMERROR = "When evaluation ends in permerror, SPF passes for no mail at all, whichever server sent it.";
const SPF_OPEN = "SPF then says nothing against forged mail, or even vouches for it.";
const SPF_WASTE = "Receivers stop after 10 DNS lookups; what is wasted is missing when you add a service.";
const BROKEN_SIGNATURE =
  "Mail signed with this key fails DKIM. Where SPF does not align either, as with forwarded mail, it fails DMARC.";
const WEAK_KEY = "Whoever finds out the private key can sign mail as you.";
const NO_POLICY = "Receivers accept forged mail in your name as if you had no objection, and send you no reports.";
const NOT_RECEIVED = "Mail to the domain cannot be delivered as you expect.";
const DOWNGRADE =
  "Without an enforced policy, somebody on the way can make senders deliver mail to you unencrypted or to another server.";
const BLIND = "Without TLS reports, you do not notice when senders cannot deliver to you over TLS.";
const NO_LOGO = "Mailbox providers show no logo beside your mail. Delivery is not affected.";

const REASONS: Readonly<Record<HealthCode, string>> = {
  dmarc_missing: NO_POLICY,
  dmarc_several: NO_POLICY,
  dmarc_inherited:
    "Reports are about the other domain, and its owner decides what happens to forged mail in this name.",
  dmarc_policy_invalid: "Receivers treat a record with an invalid policy as p=none, or ignore it.",
  dmarc_syntax: "Receivers differ in how they read a record with faults; some ignore the tag, some the record.",
  dmarc_policy_none: "Forged mail in your name is still delivered. p=none is for learning who sends for you.",
  dmarc_not_reported: "Without reports, you see neither your own failing mail nor forged mail in your name.",
  dmarc_partial: "Forged mail gets through at receivers that apply the percentage.",
  dmarc_test_mode: "Receivers are asked to apply one step less than the policy says.",
  spf_missing: NO_SPF,
  spf_several: PERMERROR,
  spf_not_recognized: NO_SPF,
  spf_syntax: PERMERROR,
  spf_unknown_mechanism: PERMERROR,
  spf_unknown_modifier: "What the modifier was meant to do does not happen.",
  spf_lookups: PERMERROR,
  spf_lookups_near:
    "A service that you include can add lookups at any time, and then SPF stops working for all your mail.",
  spf_void_lookups: PERMERROR,
  spf_void: "Receivers return permerror after 2 lookups that find nothing.",
  spf_mx_hosts: PERMERROR,
  spf_ptr: "Receivers may skip ptr, so mail that depends on it passes at some of them only.",
  spf_pass_all: SPF_OPEN,
  spf_neutral_all: SPF_OPEN,
  spf_no_all: SPF_OPEN,
  spf_target_missing: PERMERROR,
  spf_loop: PERMERROR,
  spf_after_all: "Servers that the term was meant to allow do not pass SPF.",
  spf_duplicate: SPF_WASTE,
  spf_too_long: "Receivers without TCP to your name servers do not get the record.",
  spf_macro: "The result depends on the message, so it cannot be predicted here.",
  dkim_missing: BROKEN_SIGNATURE,
  dkim_unpublished: "Nothing relies on this selector now.",
  dkim_unproven: "Somebody claims a signature that was never valid: a forger, or a service that is not set up.",
  dkim_dangling_alias: `${BROKEN_SIGNATURE} Somebody who takes over the target can sign as you.`,
  dkim_several: BROKEN_SIGNATURE,
  dkim_invalid: BROKEN_SIGNATURE,
  dkim_revoked: BROKEN_SIGNATURE,
  dkim_key_too_short: BROKEN_SIGNATURE,
  dkim_key_short: WEAK_KEY,
  dkim_key_too_long: "Some receivers verify no keys of this length, and treat the mail as unsigned.",
  dkim_test_mode: "Receivers may treat mail with this key as unsigned.",
  dkim_sha1_only: BROKEN_SIGNATURE,
  dkim_not_for_mail: BROKEN_SIGNATURE,
  dkim_ed25519_only: "Receivers that do not verify Ed25519 treat your mail as unsigned.",
  dkim_no_selector: "Nothing can be said about your keys until a report names a selector.",
  mx_missing: "Senders that find no MX try the web server, and mail may be lost.",
  mx_null: "That is right for a domain that only sends, or sends no mail at all.",
  mx_null_not_alone: NOT_RECEIVED,
  mx_address: NOT_RECEIVED,
  domain_missing: "Nothing can be published, sent or received under a name that does not exist.",
  mta_sts_missing: DOWNGRADE,
  mta_sts_not_needed: "There is no mail to protect on its way.",
  mta_sts_several: DOWNGRADE,
  mta_sts_syntax: DOWNGRADE,
  mta_sts_host_missing: DOWNGRADE,
  mta_sts_certificate: DOWNGRADE,
  mta_sts_response: DOWNGRADE,
  mta_sts_content_type: DOWNGRADE,
  mta_sts_policy: DOWNGRADE,
  mta_sts_mode: DOWNGRADE,
  mta_sts_mx: "Under an enforced policy, senders do not deliver to mail hosts that the policy does not name.",
  mta_sts_max_age: "Senders forget the policy before the next mail, and are unprotected again.",
  tls_rpt_missing: BLIND,
  tls_rpt_several: BLIND,
  tls_rpt_syntax: BLIND,
  bimi_missing: NO_LOGO,
  bimi_declined: NO_LOGO,
  bimi_several: NO_LOGO,
  bimi_syntax: NO_LOGO,
  bimi_location: NO_LOGO,
  bimi_policy: NO_LOGO,
  bimi_no_certificate: NO_LOGO,
};

/** Why a finding of domain health matters, in a sentence or two. */
export const findingReason = (code: HealthCode): string => REASONS[code];
