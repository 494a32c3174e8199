// The executable that `make build` writes, which tests of other programs start.
import { resolve } from "node:path";

export const executable = resolve(import.meta.dir, "../../dist/sluice");
