-- Listeners have the engines sluice and bun. The first serves what all former ones did, and is the default.
UPDATE listeners SET document = json_set(json_remove(document, '$.shared_engines'), '$.engine', 'sluice');
-- Routes and their records in applications have no exact_responses. Quotation marks inside of texts are escaped.
UPDATE routes SET document = json_remove(document, '$.exact_responses');
UPDATE applications SET document = replace(replace(document, ',"exact_responses":"off"', ''), ',"exact_responses":"on"', '')
	WHERE instr(document, '"exact_responses":') > 0;
