// Knowledge of JSON texts that plugins may use; only passes on.
export { type Ambiguity, findAmbiguity } from "../model/json-ambiguity.ts";
