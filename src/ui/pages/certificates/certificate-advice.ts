// Advice for a failed certificate, by the error message of the gateway; renders nothing.

const advice: readonly (readonly [pattern: RegExp, text: string])[] = [
  [
    /limit is reached/,
    "The CA's rate limit is reached. The gateway retries automatically; use a staging account for tests.",
  ],
  [
    /CAA record forbids/,
    "Change the CAA record of the domain so that it names this CA, or delete the record.",
  ],
  [
    /look the name up|could not resolve|DNS problem|NXDOMAIN|no valid A/,
    "Create an A or AAAA record that points to this gateway, and wait until DNS has propagated it.",
  ],
  [
    /external account binding/,
    "Get a key id and an HMAC key from the CA and enter them in the ACME account.",
  ],
  [/terms of service/, "Open the ACME account and agree to the terms again."],
  [/e-mail address/, "Correct the e-mail address of the ACME account."],
  [
    /TXT|DNS provider|zone|record/,
    "Open the DNS provider and test the zone: its page shows the error.",
  ],
  [
    /could not connect|TLS connection/,
    "The name must reach this gateway from the Internet on port 80 (or 443): check port forwarding and firewalls.",
  ],
  [
    /wrong challenge response/,
    "Another server responds for this name, or a proxy in front of this gateway.",
  ],
  [
    /no ACME account|account that is enabled/,
    "Create an ACME account; the gateway then requests the certificate.",
  ],
  [
    /cannot be reached|refused the connection|did not (?:answer|respond)|cannot be resolved|not trusted/,
    "This gateway could not reach the CA: check its Internet connection and its name servers.",
  ],
];

/** A sentence; null: no advice for this error. */
export const adviceFor = (error: string): string | null =>
  advice.find(([pattern]) => pattern.test(error))?.[1] ?? null;
