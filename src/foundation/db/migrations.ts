// Written by `npm run migrations`. Do not edit.
import m0000 from "../../../drizzle/0000_foundation.sql" with { type: "text" };
import m0001 from "../../../drizzle/0001_append_only_ledger.sql" with { type: "text" };
import m0002 from "../../../drizzle/0002_suppressions.sql" with { type: "text" };
import m0003 from "../../../drizzle/0003_bulk.sql" with { type: "text" };
import m0004 from "../../../drizzle/0004_webhooks_and_blocklists.sql" with { type: "text" };
import m0005 from "../../../drizzle/0005_dmarc.sql" with { type: "text" };
import m0006 from "../../../drizzle/0006_webhook_modes_and_ledger_inserts.sql" with { type: "text" };
import m0007 from "../../../drizzle/0007_list_reading_and_evidence.sql" with { type: "text" };
import m0008 from "../../../drizzle/0008_bulk_rounds.sql" with { type: "text" };
import m0009 from "../../../drizzle/0009_report-trust.sql" with { type: "text" };
import m0010 from "../../../drizzle/0010_notifications_and_subjects.sql" with { type: "text" };
import m0011 from "../../../drizzle/0011_blocklist_listings_and_ranges.sql" with { type: "text" };
import m0012 from "../../../drizzle/0012_blocklist-trust.sql" with { type: "text" };
import m0013 from "../../../drizzle/0013_blocklist-usability.sql" with { type: "text" };
import m0014 from "../../../drizzle/0014_address-networks.sql" with { type: "text" };
import m0015 from "../../../drizzle/0015_report-authors.sql" with { type: "text" };
import m0016 from "../../../drizzle/0016_failure-reports.sql" with { type: "text" };
import m0017 from "../../../drizzle/0017_domain-health.sql" with { type: "text" };
import m0018 from "../../../drizzle/0018_foamy_lake.sql" with { type: "text" };
import m0019 from "../../../drizzle/0019_imap_intake.sql" with { type: "text" };
import m0020 from "../../../drizzle/0020_furry_susan_delgado.sql" with { type: "text" };
import m0021 from "../../../drizzle/0021_accounts_audit.sql" with { type: "text" };
import m0022 from "../../../drizzle/0022_deleted_accounts.sql" with { type: "text" };
import m0023 from "../../../drizzle/0023_gigantic_inertia.sql" with { type: "text" };
import m0024 from "../../../drizzle/0024_users.sql" with { type: "text" };
import m0025 from "../../../drizzle/0025_legal_nightmare.sql" with { type: "text" };
import m0026 from "../../../drizzle/0026_flippant_tiger_shark.sql" with { type: "text" };
import m0027 from "../../../drizzle/0027_usage.sql" with { type: "text" };
import m0028 from "../../../drizzle/0028_dmarc_overviews.sql" with { type: "text" };
import m0029 from "../../../drizzle/0029_dmarc_weekly.sql" with { type: "text" };
import m0030 from "../../../drizzle/0030_report_filters.sql" with { type: "text" };
import m0031 from "../../../drizzle/0031_doubtful_reports.sql" with { type: "text" };
import m0032 from "../../../drizzle/0032_history_indexes.sql" with { type: "text" };
import m0033 from "../../../drizzle/0033_unknown_reporters.sql" with { type: "text" };
import m0034 from "../../../drizzle/0034_purge_and_erase_indexes.sql" with { type: "text" };
import m0035 from "../../../drizzle/0035_removed_targets.sql" with { type: "text" };
import m0036 from "../../../drizzle/0036_fix_record.sql" with { type: "text" };
import m0037 from "../../../drizzle/0037_worried_purple_man.sql" with { type: "text" };
import m0038 from "../../../drizzle/0038_unknown_stone_men.sql" with { type: "text" };
import m0039 from "../../../drizzle/0039_chemical_nighthawk.sql" with { type: "text" };
import m0040 from "../../../drizzle/0040_record_history.sql" with { type: "text" };
import m0041 from "../../../drizzle/0041_cynical_molly_hayes.sql" with { type: "text" };
import m0042 from "../../../drizzle/0042_first_steps_and_warnings.sql" with { type: "text" };
import m0043 from "../../../drizzle/0043_list_troubles.sql" with { type: "text" };
import m0044 from "../../../drizzle/0044_lyrical_korvac.sql" with { type: "text" };
import m0045 from "../../../drizzle/0045_chubby_centennial.sql" with { type: "text" };
import m0046 from "../../../drizzle/0046_nosy_lady_mastermind.sql" with { type: "text" };
import m0047 from "../../../drizzle/0047_bitter_chimera.sql" with { type: "text" };
import m0048 from "../../../drizzle/0048_lush_crystal.sql" with { type: "text" };
import m0049 from "../../../drizzle/0049_absurd_black_bolt.sql" with { type: "text" };
import m0050 from "../../../drizzle/0050_fresh_korg.sql" with { type: "text" };
import m0051 from "../../../drizzle/0051_absurd_shinobi_shaw.sql" with { type: "text" };

export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** Every migration in its order. The database's `user_version` counts how many of them it has. */
export const MIGRATIONS: readonly Migration[] = [
  { name: "0000_foundation", sql: m0000 },
  { name: "0001_append_only_ledger", sql: m0001 },
  { name: "0002_suppressions", sql: m0002 },
  { name: "0003_bulk", sql: m0003 },
  { name: "0004_webhooks_and_blocklists", sql: m0004 },
  { name: "0005_dmarc", sql: m0005 },
  { name: "0006_webhook_modes_and_ledger_inserts", sql: m0006 },
  { name: "0007_list_reading_and_evidence", sql: m0007 },
  { name: "0008_bulk_rounds", sql: m0008 },
  { name: "0009_report-trust", sql: m0009 },
  { name: "0010_notifications_and_subjects", sql: m0010 },
  { name: "0011_blocklist_listings_and_ranges", sql: m0011 },
  { name: "0012_blocklist-trust", sql: m0012 },
  { name: "0013_blocklist-usability", sql: m0013 },
  { name: "0014_address-networks", sql: m0014 },
  { name: "0015_report-authors", sql: m0015 },
  { name: "0016_failure-reports", sql: m0016 },
  { name: "0017_domain-health", sql: m0017 },
  { name: "0018_foamy_lake", sql: m0018 },
  { name: "0019_imap_intake", sql: m0019 },
  { name: "0020_furry_susan_delgado", sql: m0020 },
  { name: "0021_accounts_audit", sql: m0021 },
  { name: "0022_deleted_accounts", sql: m0022 },
  { name: "0023_gigantic_inertia", sql: m0023 },
  { name: "0024_users", sql: m0024 },
  { name: "0025_legal_nightmare", sql: m0025 },
  { name: "0026_flippant_tiger_shark", sql: m0026 },
  { name: "0027_usage", sql: m0027 },
  { name: "0028_dmarc_overviews", sql: m0028 },
  { name: "0029_dmarc_weekly", sql: m0029 },
  { name: "0030_report_filters", sql: m0030 },
  { name: "0031_doubtful_reports", sql: m0031 },
  { name: "0032_history_indexes", sql: m0032 },
  { name: "0033_unknown_reporters", sql: m0033 },
  { name: "0034_purge_and_erase_indexes", sql: m0034 },
  { name: "0035_removed_targets", sql: m0035 },
  { name: "0036_fix_record", sql: m0036 },
  { name: "0037_worried_purple_man", sql: m0037 },
  { name: "0038_unknown_stone_men", sql: m0038 },
  { name: "0039_chemical_nighthawk", sql: m0039 },
  { name: "0040_record_history", sql: m0040 },
  { name: "0041_cynical_molly_hayes", sql: m0041 },
  { name: "0042_first_steps_and_warnings", sql: m0042 },
  { name: "0043_list_troubles", sql: m0043 },
  { name: "0044_lyrical_korvac", sql: m0044 },
  { name: "0045_chubby_centennial", sql: m0045 },
  { name: "0046_nosy_lady_mastermind", sql: m0046 },
  { name: "0047_bitter_chimera", sql: m0047 },
  { name: "0048_lush_crystal", sql: m0048 },
  { name: "0049_absurd_black_bolt", sql: m0049 },
  { name: "0050_fresh_korg", sql: m0050 },
  { name: "0051_absurd_shinobi_shaw", sql: m0051 },
];
