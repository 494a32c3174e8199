// The confirmation of a deletion with its dependents and conflicts; sends only dry runs by itself.
import { Alert, Button, Checkbox, Group, List, Loader, Modal, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useBulk } from "../api/bulk.ts";
import { useConnection } from "../api/connection-context.ts";
import { toMessage } from "../api/error.ts";
import { nameOf, type ResourceKey, resources } from "../api/resources.ts";

/** An object to delete. */
export interface PendingDelete {
  readonly id: string;
  readonly name: string;
}

export const toPendingDelete = (object: { readonly id: string }): PendingDelete => ({
  id: object.id,
  name: nameOf(object),
});

interface Props {
  readonly resource: ResourceKey;
  /** Null or empty: the dialog is closed. */
  readonly objects: readonly PendingDelete[] | null;
  readonly onClose: () => void;
  readonly onDeleted?: () => void;
}

/** The result of a dry run. */
interface Forecast {
  /** Sentences of the API: `service "web" is used by route "shop"`. */
  readonly blockers: readonly string[];
  /** Conflicts that a cascade cannot resolve: `the last admin cannot be deleted`. */
  readonly refusals: readonly string[];
  /** Names of objects that are deleted too. */
  readonly dependents: readonly string[];
}

/** `<ConfirmDelete resource="services" objects={pendingDelete} onClose={…} />` */
export function ConfirmDelete({ resource, objects, onClose, onDeleted }: Props) {
  const [cascade, setCascade] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const bulk = useBulk(resource);
  const isOpen = objects !== null && objects.length > 0;
  const forecast = useForecast(resource, isOpen ? objects : [], cascade);
  const close = () => {
    setCascade(false);
    setFailure(null);
    onClose();
  };
  const remove = async () => {
    setBusy(true);
    setFailure(null);
    try {
      await bulk(objects ?? [], cascade ? "cascade" : "delete");
      close();
      onDeleted?.();
    } catch (error) {
      setFailure(toMessage(error));
    } finally {
      setBusy(false);
    }
  };
  const { word, plural } = resources[resource];
  const title =
    objects?.length === 1
      ? `Delete ${word} ${objects[0]?.name}?`
      : `Delete ${objects?.length} ${plural}?`;
  const isBlocked = forecast !== null && forecast.blockers.length > 0 && !cascade;
  const isRefused = forecast !== null && forecast.refusals.length > 0;
  return (
    <Modal opened={isOpen} onClose={close} title={title}>
      <Stack>
        <ForecastText forecast={forecast} />
        {(cascade || isBlocked) && !isRefused && (
          <Checkbox
            label="Delete dependent objects too"
            checked={cascade}
            onChange={(event) => setCascade(event.currentTarget.checked)}
          />
        )}
        {failure !== null && (
          <Alert color="red" role="alert">
            {failure}
          </Alert>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={close} data-autofocus>
            Cancel
          </Button>
          <Button
            color="red"
            loading={isBusy}
            disabled={forecast === null || isBlocked || isRefused}
            onClick={remove}
          >
            Delete
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function ForecastText({ forecast }: { readonly forecast: Forecast | null }) {
  if (forecast === null) return <Loader size="sm" aria-label="Checking dependencies" />;
  const { refusals, blockers, dependents } = forecast;
  if (refusals.length > 0) return <Named text="Cannot be deleted:" names={refusals} />;
  if (blockers.length > 0) return <Named text="Still in use:" names={blockers} />;
  if (dependents.length > 0) return <Named text="Also deleted:" names={dependents} />;
  return <Text size="sm">No dependent objects.</Text>;
}

function Named({ text, names }: { readonly text: string; readonly names: readonly string[] }) {
  return (
    <Stack gap={4}>
      <Text size="sm">{text}</Text>
      <List size="sm" style={{ overflowWrap: "anywhere" }}>
        {names.slice(0, 20).map((name) => (
          <List.Item key={name}>{name}</List.Item>
        ))}
        {names.length > 20 && <List.Item>and {names.length - 20} more</List.Item>}
      </List>
    </Stack>
  );
}

/** Maximum number of dry runs, because each object needs a call. */
const MAX_FORECASTS = 50;

function useForecast(
  resource: ResourceKey,
  objects: readonly PendingDelete[],
  cascade: boolean,
): Forecast | null {
  const connection = useConnection();
  const [forecast, setForecast] = useState<Forecast | null>(null);
  const ids = objects.map(({ id }) => id).join();
  useEffect(() => {
    setForecast(null);
    if (ids === "") return;
    const stop = new AbortController();
    const ask = async (id: string): Promise<Forecast> => {
      const query = { dry_run: 1, ...(cascade ? { cascade: 1 } : {}) };
      const options = { method: "DELETE", query, signal: stop.signal } as const;
      try {
        const { alsoDeleted } = await connection.send(`/${resource}/${id}`, options);
        return { blockers: [], refusals: [], dependents: alsoDeleted?.split(", ") ?? [] };
      } catch (error) {
        const text = toMessage(error);
        const isUsed = / is used by /.test(text);
        return { blockers: isUsed ? [text] : [], refusals: isUsed ? [] : [text], dependents: [] };
      }
    };
    void Promise.all(ids.split(",").slice(0, MAX_FORECASTS).map(ask)).then((all) => {
      if (stop.signal.aborted) return;
      const unique = (names: readonly string[]) => [...new Set(names)];
      setForecast({
        blockers: unique(all.flatMap(({ blockers }) => blockers)),
        refusals: unique(all.flatMap(({ refusals }) => refusals)),
        dependents: unique(all.flatMap(({ dependents }) => dependents)),
      });
    });
    return () => stop.abort();
  }, [connection, resource, ids, cascade]);
  return forecast;
}
