-- The advice to correct a record has the name that the field uses.
UPDATE `dmarc_overviews` SET `body` = json_set(`body`, '$.next.action', 'fix_record')
	WHERE json_extract(`body`, '$.next.action') = 'mend_record';
