// The plugins of the directory: which code of each file is served, and why another one is not; configures nothing.
import { Anchor, Button, Code, Group, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useRead } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Can, Section } from "../../parts/page-layout.tsx";
import { RelativeTime, StatusBadge, type Tone } from "../../parts/status.tsx";

type Directory = Schemas["PluginDirectory"];
type PluginFile = Directory["plugins"][number];

const REFRESH_MS = 5000;
/** Enough to tell versions apart. */
const HASH_LETTERS = 12;

const tones: Readonly<Record<PluginFile["state"], Tone>> = {
  loaded: "good",
  removed: "warn",
  refused: "bad",
  disabled: "bad",
};

/** Nothing while the gateway has no such directory and the user may not set one. */
export function PluginDirectory() {
  const connection = useConnection();
  const { data } = useRead<Directory>("plugins/directory", { everyMs: REFRESH_MS });
  const reload = useChange<Directory>({
    send: () => connection.send("/plugins/directory", { method: "POST" }),
    touches: ["plugins", "plugins/directory", "plugins/schemas"],
    done: () => "The files of the directory are read",
  });
  const directory = data?.value;
  if (directory === undefined) return null;
  if (directory.directory === null && directory.plugins.length === 0)
    return (
      <Can needs="admin">
        <Section title="Plugins directory" text={<Hint />}>
          {null}
        </Section>
      </Can>
    );
  return (
    <Section
      title="Plugins directory"
      text={directory.directory === null ? <Hint /> : <Place directory={directory} />}
      actions={
        <Can needs="admin">
          <Button variant="default" loading={reload.isPending} onClick={() => reload.mutate()}>
            Load changed files
          </Button>
        </Can>
      }
    >
      <Stack gap="xs">
        {directory.problems.map((problem) => (
          <Problem key={problem} text={problem} />
        ))}
        {directory.plugins.map((plugin) => (
          <FileEntry key={plugin.name} plugin={plugin} />
        ))}
        {directory.plugins.length === 0 && (
          <Text size="sm" c="dimmed">
            The directory has no plugins. <Code>sluice plugin new NAME</Code> creates one.
          </Text>
        )}
      </Stack>
    </Section>
  );
}

function Hint() {
  return (
    <>
      The gateway loads plugins of your own from a directory, see{" "}
      <Anchor component={Link} href={pagePath("gateway-settings")} underline="always" inherit>
        Plugins of your own
      </Anchor>{" "}
      in the settings.
    </>
  );
}

function Place({ directory: { directory, source } }: { readonly directory: Directory }) {
  return (
    <>
      <Code>{directory}</Code> {source === "flag" ? "of --plugins-dir" : "of the settings"}
    </>
  );
}

function FileEntry({ plugin }: { readonly plugin: PluginFile }) {
  const { name, file, state, hash, loaded_at, reloads, problem } = plugin;
  const line = problem?.line == null ? "" : `:${problem.line}`;
  return (
    <Stack gap={2} className="line" pb="xs" style={{ overflowWrap: "anywhere" }}>
      <Group gap="xs">
        <Text size="sm" fw={600}>
          {name}
        </Text>
        <StatusBadge state={state} tone={tones[state]} />
        <Text size="xs" c="dimmed">
          {file}
          {hash !== null && `, sha256 ${hash.slice(0, HASH_LETTERS)}…`}
          {reloads > 0 && `, ${reloads} ${reloads === 1 ? "reload" : "reloads"}`}
        </Text>
        {loaded_at !== null && <RelativeTime at={loaded_at} />}
      </Group>
      {problem !== null && (
        <Problem text={`${problem.file ?? file}${line}: ${problem.phase}: ${problem.message}`} />
      )}
    </Stack>
  );
}

function Problem({ text }: { readonly text: string }) {
  return (
    <Text size="sm" c="var(--mantine-color-error)" role="alert">
      {text}
    </Text>
  );
}
