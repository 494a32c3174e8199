// Opens a data directory without a running gateway, for a command that repairs it; knows no command.
import { systemClock } from "../clock.ts";
import { type ChangeContext, compileStored } from "../control/stored.ts";
import { fieldChecks } from "../control/field-checks.ts";
import { KeyRotation } from "../control/key-rotation.ts";
import { Recovery } from "../auth/recovery.ts";
import { openSecretKey } from "../control/sealing.ts";
import { createLog } from "../log.ts";
import { TargetBoard } from "../shared-memory/target-board.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { StoreError } from "../store/error.ts";
import { Store } from "../store/store.ts";
import { idleRollout, type OpenOffline } from "./local-command.ts";
import { RepairCatalogue } from "./plugins-dir.ts";
import { createControl } from "./stored-control.ts";

/** The data directory for a command that repairs it, while no gateway serves it. */
export const createOpenOffline =
  (builtIn: PluginCatalogue): OpenOffline =>
  (dataDir) => {
    const plugins = new RepairCatalogue(builtIn);
    const sink = (line: string) => void process.stderr.write(line);
    const log = createLog({ level: "warn", format: "text", sink });
    const store = Store.open({ dataDir, log });
    try {
      if (store.fleetId() !== null)
        throw new StoreError(
          "this data directory is part of a fleet, which must get the change as well: start the gateway, and run the command again",
        );
      const key = openSecretKey({ dataDir, env: process.env, keyIds: store.sealedKeyIds() });
      const { box } = key;
      store.secretKey.keeper = key;
      const context = (): ChangeContext => ({
        tls: { cert: "", key: "" },
        checks: fieldChecks,
        plugins,
        managementAddresses: [],
        openSealed: (sealed) => box.open(sealed),
      });
      const current = compileStored(store.load(), context());
      const parts = { box, rollout: idleRollout, targetBoard: TargetBoard.create(0) };
      const control = createControl(store, {
        ...parts,
        log,
        current,
        context,
        plugins,
        clock: systemClock,
      });
      const close = () => {
        control.audit.flush(true);
        store.close();
      };
      const keyRotation = new KeyRotation({ control, key, store });
      return { operations: new Recovery(control, keyRotation), close };
    } catch (error) {
      store.close();
      throw error instanceof StoreError ? error : new StoreError((error as Error).message);
    }
  };
