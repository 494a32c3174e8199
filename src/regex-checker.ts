// Entry of the thread that checks regular expressions: connects the checks to their thread; knows nothing else.
import { serveChecks } from "./snapshot/regex-thread.ts";

declare const self: Worker;

serveChecks(self);
