// The warning about the kernel setting: only where it is off and it matters.
import { expect, test } from "bun:test";
import { hostWarnings } from "../../../src/control/host-warnings.ts";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";

const configOf = (
  protocol: string,
  certificates: readonly boolean[],
  { enabled = true, engine = "bun" } = {},
) =>
  ({
    listeners: new Map([["l", { enabled, protocol, engine }]]),
    certificates: new Map(certificates.map((each, index) => [String(index), { enabled: each }])),
  }) as unknown as GatewayConfig;

test.each([
  ["off, with a certificate", configOf("https", [true]), "0\n", 1],
  ["on", configOf("https", [true]), "1\n", 0],
  ["no such setting: another system, or an old kernel", configOf("https", [true]), null, 0],
  ["no certificate that could be replaced", configOf("https", []), "0\n", 0],
  ["only certificates that are switched off", configOf("https", [false]), "0\n", 0],
  ["no https listener", configOf("http", [true]), "0\n", 0],
  [
    "an https listener that is switched off",
    configOf("https", [true], { enabled: false }),
    "0\n",
    0,
  ],
  ["our own engine", configOf("https", [true], { engine: "sluice" }), "0\n", 0],
] as const)("%s", (_why, config, setting, count) => {
  const warnings = hostWarnings(config, () => setting);
  expect(warnings.length).toBe(count);
  if (count > 0) expect(warnings[0]).toContain("net.ipv4.tcp_migrate_req");
});
