// The dry run of a new application, and what to do with conflicting objects; creates nothing.
import { Alert, Anchor, Button, Checkbox, Group, List, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { dryRun } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError } from "../../api/error.ts";
import type { Read, Write } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { Settings } from "./application-summary.tsx";
import { redirectOf } from "./application-state.ts";
import { CheckLine, Checking } from "./live-checks.tsx";

interface PlannedChange {
  readonly action: "create" | "update" | "delete";
  readonly kind: string;
  readonly name: string | null;
  readonly diff: readonly {
    readonly path: string;
    readonly before: unknown;
    readonly after: unknown;
  }[];
}

interface PlanStepProps {
  readonly body: Write<"applications">;
  /** Whether the application adopts existing objects. */
  readonly adopts: boolean;
  readonly onAdopt: (adopts: boolean) => void;
  readonly onStep: (step: number) => void;
  /** The error of the last attempt to create. */
  readonly failure: Error | null;
}

export function PlanStep({ body, adopts, onAdopt, onStep, failure }: PlanStepProps) {
  const plan = usePlan(body, adopts);
  const refused = plan.error instanceof ApiError ? plan.error : null;
  const canAdopt = isAdoptable(plan.error);
  return (
    <Section title="Preview" text="One transaction: all objects, or none if one fails.">
      <Stack gap="sm">
        <Summary body={body} />
        <Settings application={body} />
        {(canAdopt || adopts) && (
          <Adoption
            reason={canAdopt ? (refused?.message ?? "") : ""}
            adopts={adopts}
            onAdopt={onAdopt}
          />
        )}
        {plan.isFetching && <Checking text="Running a dry run…" />}
        {plan.error !== null && !canAdopt && (
          <>
            <ErrorPanel
              error={plan.error}
              title="The gateway would reject this"
              onRetry={plan.refetch}
            />
            <StepLink error={refused} onStep={onStep} />
          </>
        )}
        {plan.data !== undefined && !canAdopt && plan.error === null && (
          <Planned changes={plan.data.changes} warnings={plan.data.warnings} />
        )}
        {failure !== null && <ErrorPanel error={failure} title="Not created" />}
      </Stack>
    </Section>
  );
}

function usePlan(body: Write<"applications">, adopts: boolean) {
  const connection = useConnection();
  return useQuery({
    queryKey: ["applications/plan", JSON.stringify(body), adopts],
    retry: false,
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const query = { ...dryRun.query, ...(adopts ? { adopt: 1 } : {}) };
      const options = { method: "POST", body, query, signal } as const;
      const { value } = await connection.send<Read<"applications">>("/applications", options);
      return {
        changes: (value.changes ?? []) as readonly PlannedChange[],
        warnings: value.warnings,
      };
    },
  });
}

function Summary({ body }: Pick<PlanStepProps, "body">) {
  const { domains, upstream, targets = [] } = body;
  const servers = targets.map(({ host, port }) => (port == null ? host : `${host}:${port}`));
  const redirect = redirectOf(body);
  return (
    <Text style={{ overflowWrap: "anywhere" }}>
      <b>{domains.join(", ")}</b> {redirect === null ? "forwards" : "redirects"} to{" "}
      <span className="mono">
        {redirect ?? upstream ?? (servers.join(", ") || "no upstream yet")}
      </span>
    </Text>
  );
}

interface AdoptionProps extends Pick<PlanStepProps, "adopts" | "onAdopt"> {
  /** The conflict; empty once it is adopted. */
  readonly reason: string;
}

/** Whether the application could adopt what the gateway refuses it for. */
export const isAdoptable = (error: Error | null): boolean =>
  error instanceof ApiError && error.status === 409 && error.message.includes("adopt=1");

export function Adoption({ reason, adopts, onAdopt }: AdoptionProps) {
  return (
    <Alert color="yellow" title="Object exists already">
      <Stack gap="sm">
        {reason !== "" && (
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {reason.replace(/;? *\?adopt=1.*$/, "")}.
          </Text>
        )}
        <Text size="sm">
          The application can adopt it: it keeps its id and other settings, and is deleted with the
          application. Or go back and choose another name.
        </Text>
        <Checkbox
          label="Adopt it"
          checked={adopts}
          onChange={(event) => onAdopt(event.currentTarget.checked)}
        />
      </Stack>
    </Alert>
  );
}

/** Opens the step with the invalid field. */
function StepLink({
  error,
  onStep,
}: { readonly error: ApiError | null } & Pick<PlanStepProps, "onStep">) {
  const field = error?.field ?? "";
  const step = /^(name|domains)/.test(field)
    ? 0
    : /^(upstream|targets)/.test(field)
      ? 1
      : /^https/.test(field)
        ? 2
        : null;
  if (step === null) return null;
  return (
    <Group>
      <Button size="xs" variant="default" onClick={() => onStep(step)}>
        Change it
      </Button>
    </Group>
  );
}

const verbs = { create: "New", update: "Changed", delete: "Removed" } as const;

function Planned({
  changes,
  warnings,
}: {
  readonly changes: readonly PlannedChange[];
  readonly warnings: readonly string[];
}) {
  const parts = changes.filter(({ kind }) => kind !== "application");
  return (
    <Stack gap="xs">
      <List size="sm" spacing={4}>
        {parts.map(({ action, kind, name, diff }) => (
          <List.Item key={`${action} ${kind} ${name}`} style={{ overflowWrap: "anywhere" }}>
            {verbs[action]}: {kind.replaceAll("_", " ")} {name !== null && <b>{name}</b>}
            {action === "update" && diff.length > 0 && (
              <Text span size="sm" c="dimmed">
                {" "}
                (
                {diff
                  .map(({ path, before, after }) => `${path}: ${brief(before)} → ${brief(after)}`)
                  .join("; ")}
                )
              </Text>
            )}
          </List.Item>
        ))}
      </List>
      {warnings.map((warning) => (
        <CheckLine key={warning} status="warning">
          {warning}
        </CheckLine>
      ))}
      <Text size="sm" c="dimmed">
        These are ordinary objects, each in its own list.{" "}
        <Anchor href="/docs" target="_blank" size="sm" underline="always">
          API reference
        </Anchor>
      </Text>
    </Stack>
  );
}

/** A value on one line. */
export function brief(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
