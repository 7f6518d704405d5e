/** Whether a text names a zone of the IANA time zone database, such as Europe/Berlin. An offset such as +01:00 does not. */
export const isTimeZone = (name: string): boolean => {
  try {
    return /^[A-Za-z]/.test(new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone);
  } catch {
    // RangeError: there is no such zone.
    return false;
  }
};
