// Dialers for tests: one without a management API, and what others need of one.
import { Dialer } from "../../src/dialer/dialer.ts";
import type { DestinationRules } from "../../src/net/destinations.ts";

export const noRules: DestinationRules = { permitted: [], management: [] };

export const testDialer = new Dialer({ rules: () => noRules });
