-- Listeners have the engines sluice and bun. What Bun.serve cannot do is sluice: other sockets of the gateway did it before.
UPDATE listeners SET document = json_set(json_remove(document, '$.shared_engines'), '$.engine',
	CASE WHEN document ->> 'engine' IN ('full', 'sluice') OR document ->> 'shared_engines' = 1
		OR document ->> 'client_auth' <> 'none' OR document ->> 'strict_sni' = 1 OR document ->> 'proxy_protocol' = 1
		OR document ->> 'max_connections' > 0 OR document ->> 'max_connections_per_address' > 0
	THEN 'sluice' ELSE 'bun' END);
-- Routes and their records in applications have no exact_responses. Quotation marks inside of texts are escaped.
UPDATE routes SET document = json_remove(document, '$.exact_responses');
UPDATE applications SET document = replace(replace(document, ',"exact_responses":"off"', ''), ',"exact_responses":"on"', '')
	WHERE instr(document, '"exact_responses":') > 0;
