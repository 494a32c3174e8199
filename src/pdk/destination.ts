// Marks for fields that say where secrets are sent, and for secrets that are sent nowhere; only passes on.
export { destination, stays } from "../model/destination.ts";
