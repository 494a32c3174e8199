// Entry of the thread that reads a plugin from a directory: connects the reader to its thread; knows nothing else.
import { serveReader } from "./plugin-directory/reader-thread.ts";

declare const self: Worker;

serveReader(self);
