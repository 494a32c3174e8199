// What is set in an application, in words: for the review before its creation and for the result; changes nothing.
import { List, Text } from "@mantine/core";
import type { Read, Write } from "../../api/resources.ts";
import { labelOf } from "../../parts/schema/shape.ts";
import { policySchema } from "./application-values.ts";

type Application = Write<"applications"> | Read<"applications">;

const modes = {
  off: "off: plain HTTP",
  auto: "automatic",
  acme: "certificate of an ACME CA",
  certificate: "existing certificate",
  local_ca: "certificate of the local CA",
} as const;

/** One line for each setting that decides who comes in, and how. */
function settingsOf(application: Application): readonly (readonly [string, string])[] {
  const { https = {}, access = "public", networks = [], policies = {}, maintenance } = application;
  const { mode = "auto", redirect = true, hsts = false } = https;
  const inUse = Object.entries(policies)
    .filter(([, own]) => own !== null)
    .map(([name]) => labelOf(name, policySchema.properties?.[name] ?? {}));
  const clients = {
    public: "all networks",
    private: ["private networks", ...networks].join(", "),
    networks: networks.join(", "),
  };
  return [
    ["HTTPS", modes[mode]],
    ...(mode === "off"
      ? []
      : ([
          ["Redirect to HTTPS", redirect ? "on, once a trusted certificate exists" : "off"],
          ["HSTS", hsts ? "on, once a trusted certificate exists" : "off"],
        ] as const)),
    ["Access", clients[access]],
    ...(inUse.length === 0 ? [] : ([["Policies", inUse.join(", ")]] as const)),
    ...(maintenance === true ? ([["Maintenance", "on"]] as const) : []),
  ];
}

export function Settings({ application }: { readonly application: Application }) {
  return (
    <List size="sm" spacing={2} aria-label="Settings">
      {settingsOf(application).map(([label, text]) => (
        <List.Item key={label} style={{ overflowWrap: "anywhere" }}>
          {label}:{" "}
          <Text span size="sm" fw={600}>
            {text}
          </Text>
        </List.Item>
      ))}
    </List>
  );
}
