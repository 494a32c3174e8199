// The fields of the form of the settings, converted from and to the API's objects; renders nothing.
import type { Document } from "../../api/merge-patch.ts";
import type { Schemas } from "../../api/resources.ts";

type Settings = Schemas["Settings"];

/** The API's fields; absent strings are empty. */
export interface SettingsValues extends Omit<Settings, "updated_at" | "public_url" | "geoip"> {
  readonly public_url: string;
  readonly geoip: { readonly country_db: string; readonly asn_db: string };
}

export function toValues(settings: Partial<Settings>): SettingsValues {
  const { updated_at: _, public_url: url, geoip, ...rest } = settings as Settings;
  return {
    ...rest,
    public_url: url ?? "",
    geoip: { country_db: geoip.country_db ?? "", asn_db: geoip.asn_db ?? "" },
  };
}

const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());

export const toBody = (values: SettingsValues): Document => ({
  ...values,
  public_url: orNull(values.public_url),
  geoip: { country_db: orNull(values.geoip.country_db), asn_db: orNull(values.geoip.asn_db) },
});

/** The shape of an address or network; the gateway checks the rest. */
const NETWORK = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]*)(?:\/\d{1,3})?$/i;

const networks = (list: readonly string[]): string | null => {
  const wrong = list.find((text) => !NETWORK.test(text));
  return wrong === undefined
    ? null
    : `${wrong} is not an address or network such as 10.0.0.0/8 or 2001:db8::/32`;
};

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  public_url: (value: string) =>
    value.trim() === "" || /^https?:\/\/[^/?#\s]+\/?$/.test(value.trim())
      ? null
      : "Must be http:// or https:// and a host, without a path",
  trusted_proxies: networks,
  admin_allowed_cidrs: networks,
  default_site: {
    to: (value: string, { default_site: site }: SettingsValues) =>
      site.action === "redirect" && value.trim() === ""
        ? "URL or path is required"
        : /^[\x21-\x7e]*$/.test(value)
          ? null
          : "Must have no spaces and only ASCII characters",
  },
};
