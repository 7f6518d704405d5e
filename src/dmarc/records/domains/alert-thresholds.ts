import { z } from "zod";

const THRESHOLD_MAX = 1_000_000;
const messages = z.int().min(1).max(THRESHOLD_MAX);
const percent = z.number().min(0).max(100);

/** When the alert rules fire; `DEFAULT_THRESHOLDS` for what a domain does not set. */
export const alertThresholdsSchema = z
  .strictObject({
    new_source_messages: messages.meta({
      description: "Messages within seven days at which a new source without aligned mail is alerted.",
    }),
    new_source_percent: percent.meta({
      description:
        "Share of the domain's mail in that time, in percent and excluding forged mail, at which it is alerted.",
    }),
    failure_spike_messages: messages.meta({
      description: "Failing messages of a source at which an increase is alerted.",
    }),
    failure_spike_percent: percent.meta({
      description:
        "Increase of its failing share over the usual one of that weekday, in percentage points, at which it is alerted.",
    }),
    spoofing_messages: messages.meta({
      description:
        "Unauthenticated messages a day at which a spoofing campaign is alerted, if they are five times the usual number.",
    }),
  })
  .meta({ title: "DmarcAlertThresholds" });

export type AlertThresholds = Readonly<z.infer<typeof alertThresholdsSchema>>;

export const DEFAULT_THRESHOLDS: AlertThresholds = {
  new_source_messages: 10,
  new_source_percent: 1,
  failure_spike_messages: 20,
  failure_spike_percent: 15,
  spoofing_messages: 100,
};

/** The thresholds of a domain, defaults included. */
export const thresholdsOf = (domain: {
  readonly alertThresholds: Readonly<Partial<AlertThresholds>>;
}): AlertThresholds => ({
  ...DEFAULT_THRESHOLDS,
  ...domain.alertThresholds,
});
