// The known CAs and how to register there; renders nothing.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { JsonSchema } from "../../parts/schema/shape.ts";

/** The schema of the form, whose options name the CAs. */
export const schema = formSchemaOf("acme/accounts") as JsonSchema;

const names = schema.properties?.["directory_url"]?.form?.options ?? {};

/** Its name, or the host of an unknown CA. */
export const caName = (url: string): string => names[url] ?? URL.parse(url)?.host ?? url;

/** How a CA registers its users; undefined: unknown. */
export const registrationOf = (url: string): string | undefined => registrations[caName(url)];

const registrations: Readonly<Record<string, string>> = {
  "Let's Encrypt": "Free, without registration.",
  ZeroSSL:
    "Free, with an external account binding. Sign up at zerossl.com and copy the EAB credentials from Developer.",
  "Google Trust Services":
    "Free with a Google Cloud project and an external account binding: gcloud publicca external-account-keys create.",
  "SSL.com":
    "With an external account binding. Sign up at ssl.com and copy the ACME credentials of your account.",
};

/** The name of an account at a known CA; empty: unknown. */
export const accountName = (url: string): string =>
  (names[url] ?? "").toLowerCase().replaceAll(/[^a-z0-9]/g, "");

/** Whether it is such a name. */
export const isAccountName = (name: string): boolean =>
  name === "" || Object.keys(names).some((url) => accountName(url) === name);
