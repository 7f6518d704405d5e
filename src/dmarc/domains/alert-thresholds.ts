import { z } from "zod";

const THRESHOLD_MAX = 1_000_000;
const messages = z.int().min(1).max(THRESHOLD_MAX);
const percent = z.number().min(0).max(100);

/** From when on the rules alert; what a domain does not set is as in `DEFAULT_THRESHOLDS`. */
export const alertThresholdsSchema = z
  .strictObject({
    new_source_messages: messages.meta({
      description: "Messages within seven days from which a new source without aligned mail is alerted.",
    }),
    new_source_percent: percent.meta({
      description: "Its share of the domain's mail in that time, in percent, excluding forged mail.",
    }),
    failure_spike_messages: messages.meta({
      description: "Failing messages of a source from which a rise is alerted.",
    }),
    failure_spike_percent: percent.meta({
      description: "How many percentage points more of its mail fail than usual on that weekday.",
    }),
    spoofing_messages: messages.meta({
      description:
        "Unauthenticated messages a day from which a spoofing campaign is alerted, if they are five times the usual.",
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

/** The thresholds of a domain, with the defaults for those that its owner did not set. */
export const thresholdsOf = (domain: {
  readonly alertThresholds: Readonly<Partial<AlertThresholds>>;
}): AlertThresholds => ({
  ...DEFAULT_THRESHOLDS,
  ...domain.alertThresholds,
});
